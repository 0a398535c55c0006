// Runs `syncProjectCode` from the build in a separate process. Arguments: the folder, the database. Prints JSON.
import { appendFileSync } from "node:fs"
import { join } from "node:path"

// With the sources, the time that Node needs to read TypeScript would be measured too.
const built = (name) => import(new URL(`../dist/cold/${name}.js`, import.meta.url).href)
const { syncProjectCode, updateCodeFile } = await built("project-code")
const { openKnowledge } = await built("knowledge-store")

const [project, database, changed] = process.argv.slice(2)
const at = { knowledge: openKnowledge(database), project }
if (changed === undefined) {
  const sync = await syncProjectCode(at)
  const count = (table) => at.knowledge.prepare(`select count(*) from ${table}`).pluck().get()
  console.log(JSON.stringify({ sync, counts: { definitions: count("code_definition"), uses: count("code_use") } }))
} else {
  const { openParser } = await built("parse")
  const parser = await openParser()
  await parser.parse("typescript", "const ready = 1")
  const times = []
  for (let i = 0; i < 20; i++) {
    appendFileSync(join(project, changed), `\nexport const added${i} = ${i}\n`)
    const started = performance.now()
    if ((await updateCodeFile(at, changed, parser)) !== "read") throw new Error("The changed file was not read")
    times.push(performance.now() - started)
  }
  console.log(JSON.stringify({ times }))
}
at.knowledge.close()

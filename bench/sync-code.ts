// What `syncProjectCode` does, in a process of its own. Arguments: the folder, the database. Prints JSON.
import { appendFileSync } from "node:fs"
import { join } from "node:path"
import { openParser } from "../src/code/parse.ts"
import { syncProjectCode, updateCodeFile } from "../src/ingest/project-code.ts"
import { openKnowledge } from "../src/store/knowledge.ts"
import { codeCounts } from "../src/store/knowledge-code.ts"

const [project, database, changed] = process.argv.slice(2) as [string, string, string | undefined]
const at = { knowledge: openKnowledge(database), project }
if (changed === undefined) {
  const sync = await syncProjectCode(at)
  console.log(JSON.stringify({ sync, counts: codeCounts(at.knowledge, project) }))
} else {
  const parser = await openParser()
  await parser.parse("typescript", "const ready = 1")
  const times: number[] = []
  for (let i = 0; i < 20; i++) {
    appendFileSync(join(project, changed), `\nexport const added${i} = ${i}\n`)
    const started = performance.now()
    if ((await updateCodeFile(at, changed, parser)) !== "read") throw new Error("The changed file was not read")
    times.push(performance.now() - started)
  }
  console.log(JSON.stringify({ times }))
}
at.knowledge.close()

import { openParser } from "../code/parse.ts"
import { serveOrders } from "../subprocess/serve.ts"
import { type CodeOrder, type ReadCode, readCode } from "./read-code.ts"

// The process that reads a project's code: it receives files and returns facts.

const [project = ""] = process.argv.slice(2)
const parser = openParser()

serveOrders(async (files: CodeOrder[]) => {
  const results: ReadCode[] = []
  for (const file of files) results.push(await readCode(project, file, () => parser))
  return results
})

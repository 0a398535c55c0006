import { openParser } from "../code/parse.ts"
import { serveOrders } from "../subprocess/serve.ts"
import { type CodeRequest, type ReadCode, readCode } from "./read-code.ts"

// The main module of the process that reads a project's code. It receives files and returns facts.

const [project = ""] = process.argv.slice(2)
const parser = openParser()

serveOrders(async (files: CodeRequest[]) => {
  const results: ReadCode[] = []
  for (const file of files) results.push(await readCode(project, file, () => parser))
  return results
})

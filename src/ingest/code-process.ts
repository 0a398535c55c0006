import { openParser } from "../code/parse.ts"
import { serveOrders } from "../subprocess/serve.ts"
import { type CodeOrder, type CodeReadResult, readCode } from "./read-code.ts"

// The process that reads a project's code. It receives files and returns facts.

const [project = ""] = process.argv.slice(2)
const parser = openParser()

serveOrders(async (files: CodeOrder[]) => {
  const read: CodeReadResult[] = []
  for (const file of files) read.push(await readCode(project, file, () => parser))
  return read
})

import { parentPort, workerData } from "node:worker_threads"
import { openParser } from "../code/parse.ts"
import { messageOf } from "../core/error.ts"
import type { CodeAnswer, CodeOrder } from "./code-reader.ts"
import { readCode } from "./read-code.ts"

// The reading half of a project's code: files in, facts out. It never writes.

const { project } = workerData as { project: string }
const parser = await openParser()

parentPort!.on("message", async ({ id, files }: CodeOrder) => {
  let answer: CodeAnswer
  try {
    const read = []
    for (const file of files) read.push(await readCode(project, file, async () => parser))
    answer = { id, read }
  } catch (error) {
    answer = { id, error: messageOf(error) }
  }
  parentPort!.postMessage(answer)
})

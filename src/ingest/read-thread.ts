import { parentPort, workerData } from "node:worker_threads"
import { connectors } from "../connectors/index.ts"
import { messageOf } from "../core/error.ts"
import { createProjectFinder } from "../git/project.ts"
import { openStore } from "../store/sqlite-store.ts"
import { readUnit, replayUnit } from "./read-unit.ts"
import type { WorkerAnswer, WorkerJob } from "./reader.ts"

// The reading half of a sync: files in, redacted records and parsed conversations out. It never writes.

const { dexDir, history } = workerData as { dexDir: string; history: string }
const store = openStore(history)
const projectOf = createProjectFinder()

parentPort!.on("message", async ({ id, source, unit, known, replay }: WorkerJob) => {
  let answer: WorkerAnswer
  try {
    const connector = connectors.find((candidate) => candidate.source === source)!
    const context = {
      projectOf,
      dexDir,
      rawLines: (key: string, kind: "live" | "left") => store.rawLines(source, key, kind),
    }
    const write =
      replay && known
        ? await replayUnit(connector, unit, known.cursor, context)
        : await readUnit(connector, unit, known, context)
    answer = { id, write }
  } catch (error) {
    answer = { id, error: messageOf(error) }
  }
  parentPort!.postMessage(answer)
})

import { rmSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { availableParallelism, constants, loadavg, setPriority } from "node:os"
import { pathToFileURL } from "node:url"
import { messageOf } from "../core/error.ts"
import { tryLock } from "../store/sqlite/lock.ts"
import type { HelperAnswer, HelperRequest } from "./ask-helper.ts"
import { checkLocalFiles } from "./check-local.ts"
import type { EmbedRole } from "./embedder.ts"
import { type HelperPaths, helperPaths, localPackage } from "./local-package.ts"

// Loads the local model once for all of this user's searches and syncs, so that not every MCP server loads its own copy. The
// process is started on demand. It ends after a while without requests, or when the package is replaced or removed.

/**
 * How long the process waits for the next request, in milliseconds. A person or an agent often searches again within minutes. A
 * sync sends its requests without a pause, so after its last request the process need not wait long.
 */
const IDLE_MS: Record<EmbedRole, number> = { query: 600_000, document: 15_000 }
const CHECK_INTERVAL_MS = 5_000
/** The maximum number of characters in a request. A request with 32 texts of 4,000 characters takes 0.5 MB. */
const MAX_CHARS = 4 << 20

type Model = { embed(texts: string[]): Promise<Float32Array[]> }

const [dexDir, role] = process.argv.slice(2) as [string, EmbedRole]
const idleMs = Number(process.env.DEX_LOCAL_MODEL_IDLE_MS ?? IDLE_MS[role])
const installedPackage = localPackage(dexDir)
const paths = installedPackage && helperPaths(dexDir, installedPackage, role)
const lock = paths && tryLock(paths.lock)
if (lock) serveModel(paths)

function serveModel({ socket }: HelperPaths): void {
  process.umask(0o077)
  if (process.platform !== "win32") rmSync(socket, { force: true }) // a process that was killed may have left its socket
  let pendingWork: Promise<unknown> = Promise.resolve()
  let isEnding = false
  let idleTimer = setTimeout(end, IDLE_MS[role]) // tests shorten only the time after a request
  const listening = Promise.withResolvers<void>()
  const model = listening.promise.then(loadModel)
  model.catch(() => {}) // each request reports the error
  const server = createServer((client) => {
    client.on("error", () => {}) // the client disconnected before its answer
    onEachLine(client, (line) => {
      pendingWork = pendingWork.then(async () => {
        clearTimeout(idleTimer)
        if (!client.destroyed) client.write(`${JSON.stringify(await answerTo(line, model))}\n`)
        idleTimer = setTimeout(end, idleMs)
      })
    })
  })
  server.on("error", end)
  server.listen(socket, listening.resolve)
  setInterval(() => {
    const currentPackage = localPackage(dexDir)
    if (
      !currentPackage ||
      currentPackage.id !== installedPackage!.id ||
      currentPackage.version !== installedPackage!.version
    )
      end()
  }, CHECK_INTERVAL_MS)

  function end(): void {
    if (isEnding) return
    isEnding = true
    server.close() // from now on, nobody can connect
    pendingWork.then(() => {
      lock!.release()
      process.exit(0)
    })
  }
}

async function loadModel(): Promise<Model> {
  // Embedding a history takes minutes, and nobody waits for it. The priority is lowered now, because the model's threads
  // inherit it when they start.
  if (role === "document") setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  checkLocalFiles(installedPackage!.entry)
  const { openModel } = (await import(pathToFileURL(installedPackage!.entry).href)) as {
    openModel(options: { threads: number }): Promise<Model>
  }
  return openModel({ threads: threadsFor(role) })
}

/**
 * Returns the number of threads for the model. With one text at a time, a second thread hardly helps. With many texts, it helps
 * on an idle machine. On a busy machine, threads that wait for each other cost more than they gain: at a load of 16 on 2 cores,
 * dex embedded 2.0 messages/s with two threads and 3.0 with one.
 */
function threadsFor(role: EmbedRole): number {
  const processors = availableParallelism()
  return role === "document" && loadavg()[0]! < processors ? Math.min(2, processors) : 1
}

async function answerTo(line: string, model: Promise<Model>): Promise<HelperAnswer> {
  try {
    const { texts } = JSON.parse(line) as HelperRequest
    if (texts === undefined) return { pid: process.pid, bytes: process.memoryUsage().rss }
    const vectors = await (await model).embed(texts)
    return {
      vectors: vectors.map((vector) =>
        Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64"),
      ),
    }
  } catch (error) {
    return { error: messageOf(error) }
  }
}

function onEachLine(client: Socket, handle: (line: string) => void): void {
  let text = ""
  client.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk
    if (text.length > MAX_CHARS) return client.destroy()
    const lines = text.split("\n")
    text = lines.pop()!
    for (const line of lines) handle(line)
    return client
  })
}

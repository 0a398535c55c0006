import { createHash, randomBytes } from "node:crypto"
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { connect, createServer, type Server, type Socket } from "node:net"
import { dirname, join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import type { Home } from "../config/home.ts"
import {
  belongsToUser,
  isWritableByOthers,
  MAX_SOCKET_BYTES,
  privateFolder,
  shortSocketFolder,
} from "../core/private-folder.ts"
import { flag, object, optional, readAs, text } from "../core/schema.ts"
import { tryLock } from "../store/sqlite/lock.ts"

/**
 * An address that lets one browser in, once. `page` is a file that opens the address, so that it need not be on a command line.
 */
export type Entry = { address: string; page?: string }

/** The request of another `dex view`: which page to open, and whether to write a file that opens it. */
export type EntryRequest = { to: string; page: boolean }

/**
 * Connects a second `dex view` to the running one: the second one asks for an entry over a socket in a folder that only this user
 * can read. A port would not do, because any user may listen on one, and a file would have to contain a secret. Only one process
 * per home has the door, until that process ends.
 */
export type Door = {
  /** Answers every other `dex view` with a new entry. */
  open(makeEntry: (request: EntryRequest) => Entry): Promise<void>
  /** Writes a file that opens an address. Returns undefined if that fails. */
  writePage(address: string): string | undefined
  close(): void
}

type HomeFolder = Pick<Home, "dir">

const requestShape = object({ to: text(), page: flag() })
const entryShape = object({ address: text(), page: optional(text()) })
const MAX_CHARS = 8_192
const ANSWER_TIMEOUT_MS = 1_000
const MAX_TRIES = 50
const RETRY_AFTER_MS = 100
const PAGE_NAME = /^open-[\w-]+\.html$/

/** Takes the door. Returns undefined if another `dex view` has it, or if there is no private folder for it. */
export function takeDoor(home: HomeFolder): Door | undefined {
  const folder = doorFolder(home)
  const lock = folder === undefined ? undefined : tryLockIn(folder)
  if (folder === undefined || lock === undefined) return undefined
  // Removes the files of a `dex view` that was killed, and the file in which older versions stored the entry.
  removeFiles(folder)
  rmSync(join(home.dir, "view.json"), { force: true })
  let server: Server | undefined
  return {
    async open(makeEntry) {
      server = createServer((client) => answerClient(client, makeEntry))
      await listenIn(server, folder)
    },
    writePage(address) {
      const page = join(folder, `open-${randomBytes(12).toString("base64url")}.html`)
      try {
        writeFileSync(page, redirectPage(address), { mode: 0o600, flag: "wx" })
        return page
      } catch {
        return undefined // for example, the disk is full; the address is printed in any case
      }
    },
    close() {
      server?.close()
      removeFiles(folder)
      lock.release()
    },
  }
}

/** An entry to the running view. Undefined if none is running, or it does not answer. */
export async function enterRunningView(home: HomeFolder, request: EntryRequest): Promise<Entry | undefined> {
  const folder = doorFolder(home)
  if (folder === undefined) return undefined
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    // Asks only while a process of this user holds the lock.
    const lock = tryLockIn(folder)
    if (lock) {
      lock.release()
      return undefined
    }
    const entry = await requestEntry(folder, request)
    if (entry) return entry
    await pause(RETRY_AFTER_MS) // the other view may be starting
  }
  return undefined
}

function doorFolder({ dir }: HomeFolder): string | undefined {
  const folder = privateFolder(join(dir, "view"))
  if (folder === undefined || isWritableByOthers(dir)) return undefined
  return folder
}

function tryLockIn(folder: string): { release(): void } | undefined {
  try {
    return tryLock(join(folder, "lock"))
  } catch {
    return undefined // for example, the disk is full; the view is served without a door
  }
}

/**
 * The path of the socket, or the name of the pipe on Windows. If the path would be too long, the socket is in a private folder
 * with a shorter path, which is checked in the same way.
 */
function socketIn(folder: string): string | undefined {
  if (process.platform === "win32") return pipeIn(folder)
  const socket = join(folder, "socket")
  if (Buffer.byteLength(socket) <= MAX_SOCKET_BYTES) return socket
  const short = privateFolder(shortSocketFolder())
  const name = createHash("sha256").update(folder).digest("hex").slice(0, 16)
  return short === undefined ? undefined : join(short, `view-${name}.sock`)
}

/**
 * The unpredictable name of the pipe, from a file. Other users can see the pipe, but Windows does not let them write to it by
 * default.
 */
function pipeIn(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, "pipe"), "utf8")
  } catch {
    return undefined // no view is listening
  }
}

async function listenIn(server: Server, folder: string): Promise<void> {
  if (process.platform === "win32")
    writeFileSync(join(folder, "pipe"), `\\\\.\\pipe\\dex-view-${randomBytes(16).toString("hex")}`, { mode: 0o600 })
  const socket = socketIn(folder)
  if (socket === undefined) return
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(socket, resolve)
  })
  if (process.platform !== "win32") chmodSync(socket, 0o600)
}

function answerClient(client: Socket, makeEntry: (request: EntryRequest) => Entry): void {
  let request = ""
  client.on("error", () => {}) // the client went away
  client.setTimeout(ANSWER_TIMEOUT_MS, () => client.destroy())
  client.setEncoding("utf8").on("data", (chunk: string) => {
    request += chunk
    if (request.length > MAX_CHARS) return client.destroy()
    if (!request.endsWith("\n")) return
    const entryRequest = parseRequest(request)
    if (!entryRequest) return client.destroy()
    client.removeAllListeners("data").end(`${JSON.stringify(makeEntry(entryRequest))}\n`)
  })
}

function parseRequest(request: string): EntryRequest | undefined {
  try {
    const parsed = readAs(requestShape, JSON.parse(request) as unknown)
    return "ok" in parsed ? parsed.ok : undefined
  } catch {
    return undefined // not JSON
  }
}

async function requestEntry(folder: string, request: EntryRequest): Promise<Entry | undefined> {
  const socket = socketIn(folder)
  if (socket === undefined || (process.platform !== "win32" && !belongsToUser(socket, "socket"))) return undefined
  const reply = await new Promise<string>((resolve) => {
    let text = ""
    const client = connect(socket, () => client.write(`${JSON.stringify(request)}\n`))
    client.setTimeout(ANSWER_TIMEOUT_MS, () => client.destroy())
    client.on("error", () => resolve("")).on("close", () => resolve(text))
    client.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
      if (text.length > MAX_CHARS) client.destroy()
    })
  })
  return parseEntry(reply, folder)
}

/** Accepts only an address on this machine, and only a file of this user in this folder. */
function parseEntry(reply: string, folder: string): Entry | undefined {
  try {
    const parsed = readAs(entryShape, JSON.parse(reply) as unknown)
    if (!("ok" in parsed) || !/^http:\/\/127\.0\.0\.1:\d{1,5}\/enter\?code=[!-~]+$/.test(parsed.ok.address))
      return undefined
    const { address, page } = parsed.ok
    if (page === undefined) return { address }
    const isOwnPage =
      dirname(page) === folder && PAGE_NAME.test(page.slice(folder.length + 1)) && belongsToUser(page, "file")
    return isOwnPage ? { address, page } : undefined
  } catch {
    return undefined // the connection ended early
  }
}

function removeFiles(folder: string): void {
  for (const name of readdirSync(folder))
    if (PAGE_NAME.test(name) || name === "socket" || name === "pipe") rmSync(join(folder, name), { force: true })
  const socket = process.platform === "win32" ? undefined : socketIn(folder)
  if (socket !== undefined && existsSync(socket)) rmSync(socket, { force: true })
}

/** A page that redirects to the address. The code in it works once, so a copy of the page is useless afterwards. */
function redirectPage(address: string): string {
  const escapedAddress = address.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;")
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=${escapedAddress}"><title>dex</title></head><body><p><a href="${escapedAddress}">Open dex</a></p></body></html>\n`
}

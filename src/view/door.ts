import { createHash, randomBytes } from "node:crypto"
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { connect, createServer, type Server, type Socket } from "node:net"
import { dirname, join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import type { Home } from "../config/home.ts"
import {
  belongsToUser,
  isWritableByOthers,
  LONGEST_SOCKET,
  privateFolder,
  shortFolder,
} from "../core/private-folder.ts"
import { flag, object, optional, readAs, text } from "../core/schema.ts"
import { tryLock } from "../store/sqlite/lock.ts"

// How a second `dex view` gets in through the one that runs: over a socket in a folder that only this user can look into. No port
// is asked, since anybody may listen at one, and no file keeps a secret.

/** How one browser gets in, once. `page` leads there, so that the address need not be in a command line. */
export type Entry = { address: string; page?: string }

/** What a further `dex view` asks for: where to go, and whether a page is to lead there. */
export type EntryWanted = { to: string; page: boolean }

/** What the one `dex view` of a home has. It ends with the process, however that ends. */
export type Door = {
  /** Answers each further `dex view` with an entry of its own. */
  open(makeEntry: (wanted: EntryWanted) => Entry): Promise<void>
  /** Writes a page that leads to an address. Undefined if that fails. */
  writePage(address: string): string | undefined
  close(): void
}

type Place = Pick<Home, "dir">

const wantedShape = object({ to: text(), page: flag() })
const entryShape = object({ address: text(), page: optional(text()) })
const MOST_CHARS = 8_192
const ANSWER_WITHIN_MS = 1_000
const TRIES = 50
const BETWEEN_MS = 100
const PAGE = /^open-[\w-]+\.html$/

/** Undefined: another `dex view` has it, or there is no folder in which it could be kept. */
export function takeDoor(home: Place): Door | undefined {
  const folder = doorFolder(home)
  const lock = folder === undefined ? undefined : lockIn(folder)
  if (folder === undefined || lock === undefined) return undefined
  // What one that was killed left behind, and the file in which older versions kept how to get in.
  clear(folder)
  rmSync(join(home.dir, "view.json"), { force: true })
  let server: Server | undefined
  return {
    async open(makeEntry) {
      server = createServer((client) => answer(client, makeEntry))
      await listening(server, folder)
    },
    writePage(address) {
      const page = join(folder, `open-${randomBytes(12).toString("base64url")}.html`)
      try {
        writeFileSync(page, pageTo(address), { mode: 0o600, flag: "wx" })
        return page
      } catch {
        return undefined // a full disk: the address is printed instead
      }
    },
    close() {
      server?.close()
      clear(folder)
      lock.release()
    },
  }
}

/** An entry to the view that runs. Undefined: none runs, or it does not answer. */
export async function enterRunning(home: Place, wanted: EntryWanted): Promise<Entry | undefined> {
  const folder = doorFolder(home)
  if (folder === undefined) return undefined
  for (let attempt = 0; attempt < TRIES; attempt++) {
    // Only while a process of this user has the lock is anybody asked.
    const lock = lockIn(folder)
    if (lock) {
      lock.release()
      return undefined
    }
    const entry = await ask(folder, wanted)
    if (entry) return entry
    await pause(BETWEEN_MS) // it may be starting
  }
  return undefined
}

function doorFolder({ dir }: Place): string | undefined {
  const own = privateFolder(join(dir, "view"))
  if (own === undefined || isWritableByOthers(dir)) return undefined
  return own
}

function lockIn(folder: string): { release(): void } | undefined {
  try {
    return tryLock(join(folder, "lock"))
  } catch {
    return undefined // a full disk: it is served all the same
  }
}

/** Where the socket is. A folder with a long path has it in a short one, which is checked in the same way. */
function socketIn(folder: string): string | undefined {
  if (process.platform === "win32") return pipeIn(folder)
  const socket = join(folder, "socket")
  if (Buffer.byteLength(socket) <= LONGEST_SOCKET) return socket
  const short = privateFolder(shortFolder())
  const name = createHash("sha256").update(folder).digest("hex").slice(0, 16)
  return short === undefined ? undefined : join(short, `view-${name}.sock`)
}

/** A name that nobody can know before it is there. Others can see it, and by Windows' own rights they cannot write to it. */
function pipeIn(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, "pipe"), "utf8")
  } catch {
    return undefined // none listens
  }
}

async function listening(server: Server, folder: string): Promise<void> {
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

function answer(client: Socket, makeEntry: (wanted: EntryWanted) => Entry): void {
  let asked = ""
  client.on("error", () => {}) // one that went away
  client.setTimeout(ANSWER_WITHIN_MS, () => client.destroy())
  client.setEncoding("utf8").on("data", (chunk: string) => {
    asked += chunk
    if (asked.length > MOST_CHARS) return client.destroy()
    if (!asked.endsWith("\n")) return
    const wanted = wantedIn(asked)
    if (!wanted) return client.destroy()
    client.removeAllListeners("data").end(`${JSON.stringify(makeEntry(wanted))}\n`)
  })
}

function wantedIn(asked: string): EntryWanted | undefined {
  try {
    const read = readAs(wantedShape, JSON.parse(asked) as unknown)
    return "ok" in read ? read.ok : undefined
  } catch {
    return undefined // no JSON
  }
}

async function ask(folder: string, wanted: EntryWanted): Promise<Entry | undefined> {
  const socket = socketIn(folder)
  if (socket === undefined || (process.platform !== "win32" && !belongsToUser(socket, "socket"))) return undefined
  const said = await new Promise<string>((resolve) => {
    let text = ""
    const client = connect(socket, () => client.write(`${JSON.stringify(wanted)}\n`))
    client.setTimeout(ANSWER_WITHIN_MS, () => client.destroy())
    client.on("error", () => resolve("")).on("close", () => resolve(text))
    client.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
      if (text.length > MOST_CHARS) client.destroy()
    })
  })
  return entryIn(said, folder)
}

/** Only an address on this machine, and a page that is this user's, in this folder. */
function entryIn(said: string, folder: string): Entry | undefined {
  try {
    const read = readAs(entryShape, JSON.parse(said) as unknown)
    if (!("ok" in read) || !/^http:\/\/127\.0\.0\.1:\d{1,5}\/enter\?code=[!-~]+$/.test(read.ok.address))
      return undefined
    const { address, page } = read.ok
    if (page === undefined) return { address }
    const isThere = dirname(page) === folder && PAGE.test(page.slice(folder.length + 1)) && belongsToUser(page, "file")
    return isThere ? { address, page } : undefined
  } catch {
    return undefined // it ended in the middle
  }
}

function clear(folder: string): void {
  for (const name of readdirSync(folder))
    if (PAGE.test(name) || name === "socket" || name === "pipe") rmSync(join(folder, name), { force: true })
  const socket = process.platform === "win32" ? undefined : socketIn(folder)
  if (socket !== undefined && existsSync(socket)) rmSync(socket, { force: true })
}

/** A browser that opens it goes on to the address. The code in it works once, so a copy of this page is of no use afterwards. */
function pageTo(address: string): string {
  const safe = address.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;")
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=${safe}"><title>dex</title></head><body><p><a href="${safe}">Open dex</a></p></body></html>\n`
}

import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from "node:fs"
import { connect, createServer } from "node:net"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { type Door, enterRunningView, takeDoor } from "../../src/view/door.ts"
import { tempDir } from "../support/temp.ts"
import { startView } from "./process.ts"

const posix = process.platform === "win32" ? describe.skip : describe
/** Only root can act as another user. */
const withUsers = process.getuid?.() === 0 ? test : test.skip
const NOBODY = 65534

const WANTED = { to: "", page: true }
const ENTRY = { address: "http://127.0.0.1:1/enter?code=abc" }

function tempHome(): { dir: string; folder: string; socket: string } {
  const dir = join(tempDir(), ".dex")
  return { dir, folder: join(dir, "view"), socket: join(dir, "view", "socket") }
}

/** A door at which every caller gets the same entry. */
async function opened(home: { dir: string }, entry = () => ENTRY): Promise<Door> {
  const door = takeDoor(home)!
  onTestFinished(() => door.close())
  await door.open(entry)
  return door
}

/** A view of this home, as a process. Two entries lead to the same view if their ports are the same. */
async function start(home: string) {
  const view = await startView(home)
  onTestFinished(() => view.stop())
  return { ...view, port: new URL(view.address).port }
}

const isLet = async (address: string) => (await fetch(address)).status

describe("a second `dex view`", () => {
  test("gets an entry from the running one, each time with a new code", async () => {
    const home = tempDir()
    const [first, second, third] = [await start(home), await start(home), await start(home)]
    expect([second.port, third.port]).toEqual([first.port, first.port])
    expect(new Set([first.address, second.address, third.address]).size).toBe(3)
    for (const { address } of [first, second, third])
      expect([await isLet(address), await isLet(address)]).toEqual([200, 401])
  })

  test("started at the same moment gets an entry from the other", async () => {
    const home = tempDir()
    const [first, second, third] = await Promise.all([start(home), start(home), start(home)])
    expect(new Set([first.port, second.port, third.port]).size).toBe(1)
  })

  test("starts its own view after the first was killed, and removes its leftovers", async () => {
    const home = tempDir()
    const first = await start(home)
    process.kill(first.pid, "SIGKILL")
    await first.gone
    const second = await start(home)
    expect(second.port).not.toBe(first.port)
    expect(await isLet(second.address)).toBe(200)
    expect((await start(home)).port).toBe(second.port)
    await second.stop()
    expect(readdirSync(join(home, ".dex", "view"))).toEqual(["lock"])
  })

  test("gets an entry even if the path of the home is too long for a socket", async () => {
    const home = join(tempDir(), ...Array.from({ length: 12 }, (_, i) => `a-long-name-of-a-folder-${i}`))
    mkdirSync(home, { recursive: true })
    const first = await start(home)
    expect((await start(home)).port).toBe(first.port)
  })
})

posix("a second `dex view` trusts only its own user's view", () => {
  test("asks nobody while no view of this user runs, even if something listens on the socket", async () => {
    const home = tempHome()
    const door = takeDoor(home)!
    door.close()
    let connections = 0
    const other = createServer(() => void connections++)
    onTestFinished(() => void other.close())
    other.listen(home.socket)
    await once(other, "listening")
    expect(await enterRunningView(home, WANTED)).toBe(undefined)
    expect(connections).toBe(0)
  })

  test.each([
    ["a page elsewhere", { address: "http://evil.example/enter?code=abc" }],
    ["another path", { address: "http://127.0.0.1:1/other" }],
    ["a page that is not in the folder", { ...ENTRY, page: "/etc/passwd" }],
    ["a page that does not exist", { ...ENTRY, page: "FOLDER/open-abc.html" }],
  ])("an answer that names %s is rejected", async (_, entry) => {
    const home = tempHome()
    const page = "page" in entry && { page: entry.page.replace("FOLDER", home.folder) }
    let answers = 0
    const door = await opened(home, () => {
      // It answers twice, then it closes, so that the caller does not wait for a better answer.
      if (++answers === 2) setImmediate(() => door.close())
      return { ...entry, ...page }
    })
    expect(await enterRunningView(home, WANTED)).toBe(undefined)
    expect(answers).toBe(2)
  })

  test("a link in place of the folder, or of the socket, is not followed", async () => {
    const [home, other] = [tempHome(), tempHome()]
    const door = await opened(other)
    mkdirSync(home.dir, { recursive: true, mode: 0o700 })
    symlinkSync(other.folder, home.folder)
    expect([takeDoor(home), await enterRunningView(home, WANTED)]).toEqual([undefined, undefined])
    rmSync(home.folder)
    const lock = takeDoor(home)! // a view that has the lock, and whose socket was replaced
    symlinkSync(other.socket, home.socket)
    const entering = enterRunningView(home, WANTED)
    lock.close()
    expect(await entering).toBe(undefined)
    door.close()
  })

  test("there is no door in a home that others can write to, nor in a folder that they can read", async () => {
    const home = tempHome()
    mkdirSync(home.folder, { recursive: true, mode: 0o755 })
    chmodSync(home.folder, 0o755)
    expect(takeDoor(home)).toBe(undefined)
    chmodSync(home.folder, 0o700)
    chmodSync(home.dir, 0o777)
    expect(takeDoor(home)).toBe(undefined)
    chmodSync(home.dir, 0o755) // others may look into the home: the folder of the door is closed to them
    const door = await opened(home)
    expect(lstatSync(home.folder).mode & 0o777).toBe(0o700)
    expect(lstatSync(home.socket).mode & 0o777).toBe(0o600)
    expect(await enterRunningView(home, WANTED)).toEqual(ENTRY)
    door.close()
  })

  withUsers("another user's socket or folder is not used", async () => {
    const home = tempHome()
    let entries = 0
    const door = await opened(home, () => {
      entries++
      return ENTRY
    })
    chownSync(home.socket, NOBODY, NOBODY)
    const entering = enterRunningView(home, WANTED)
    // A later connection is answered later: if the other had connected, it would be counted by now.
    const client = connect(home.socket, () => client.write(`${JSON.stringify(WANTED)}\n`))
    await once(client.resume(), "close")
    door.close()
    expect([await entering, entries]).toEqual([undefined, 1])
    chownSync(home.folder, NOBODY, NOBODY)
    expect(takeDoor(home)).toBe(undefined)
  })

  withUsers("another user gets no entry, even if they can read the home and the folder", async () => {
    const home = tempHome()
    chmodSync(join(home.dir, ".."), 0o755)
    let connections = 0
    await opened(home, () => {
      connections++
      return ENTRY
    })
    chmodSync(home.dir, 0o755)
    const script = `require("net").connect(${JSON.stringify(home.socket)}).on("error", (e) => console.log(e.code)).on("connect", () => console.log("connected"))`
    const tried = () =>
      execFileSync(process.execPath, ["-e", script], { uid: NOBODY, gid: NOBODY, cwd: "/", encoding: "utf8" }).trim()
    expect(tried()).toBe("EACCES")
    chmodSync(home.folder, 0o755)
    expect(tried()).toBe("EACCES")
    expect(connections).toBe(0)
  })

  withUsers("a folder for long paths that another user made is not used", async () => {
    const before = process.env.TMPDIR
    const temp = tempDir()
    process.env.TMPDIR = temp
    onTestFinished(() => {
      if (before === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = before
    })
    const short = join(temp, `dex-${process.getuid!()}`)
    mkdirSync(short, { mode: 0o777 })
    chownSync(short, NOBODY, NOBODY)
    const home = { dir: join(tempDir(), "x".repeat(120), ".dex") }
    const door = takeDoor(home)!
    await door.open(() => ENTRY)
    expect(readdirSync(short)).toEqual([])
    door.close()
    renameSync(short, `${short}-theirs`)
  })
})

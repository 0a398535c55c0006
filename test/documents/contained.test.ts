import { spawn } from "node:child_process"
import {
  closeSync,
  constants,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { fileIdentityOf, isSameOpenFile } from "../../src/documents/files.ts"
import { tempDir } from "../support/temp.ts"

const TRIES = 4_000
const unnamed = () => undefined

/** Another process exchanges a folder for a link to the outside, and back, without a pause. */
async function swapping() {
  const [dir, outside] = [realpathSync(tempDir()), realpathSync(tempDir())]
  mkdirSync(join(dir, "d"))
  writeFileSync(join(dir, "d", "a.md"), "inside")
  writeFileSync(join(outside, "a.md"), "SECRET")
  symlinkSync(outside, join(dir, "link"))
  const swap = `const { renameSync } = require("node:fs"); process.chdir(${JSON.stringify(dir)}); console.log("swapping")
    for (;;) { renameSync("d", "away"); renameSync("link", "d"); renameSync("d", "link"); renameSync("away", "d") }`
  const child = spawn(process.execPath, ["-e", swap])
  onTestFinished(() => void child.kill("SIGKILL"))
  await new Promise((resolve) => child.stdout.once("data", resolve))
  return join(dir, "d", "a.md")
}

/** As documents are read, with or without a name for the open file. */
function read(file: string, nameOf?: () => undefined): { text: string; accepted: boolean } | undefined {
  const place = fileIdentityOf(file)
  let fd: number
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch {
    return undefined // between two exchanges nothing is there
  }
  try {
    const isOwn = place !== undefined && place.folder === join(file, "..")
    return { text: readFileSync(fd, "utf8"), accepted: isOwn && isSameOpenFile(fd, file, place, nameOf) }
  } finally {
    closeSync(fd)
  }
}

test.skipIf(process.platform === "win32").each([
  ["names open files", undefined],
  ["does not name open files", unnamed],
] as const)("if the system %s, a file behind an exchanged folder is refused", async (_, nameOf) => {
  const file = await swapping()
  const seen = { secret: 0, accepted: 0 }
  for (let i = 0; i < TRIES || (seen.secret === 0 && i < 20 * TRIES); i++) {
    const one = read(file, nameOf)
    if (one?.text === "SECRET") seen.secret++
    if (one?.accepted) {
      seen.accepted++
      expect(one.text).toBe("inside")
    }
  }
  expect(seen.secret, "the exchange never hit: this shows nothing").toBeGreaterThan(0)
})

test.each([
  ["named", undefined],
  ["not named", unnamed],
] as const)("a file that stays is accepted, and one that replaced it is not (%s)", (_, nameOf) => {
  const dir = realpathSync(tempDir())
  const file = join(dir, "a.md")
  writeFileSync(file, "a")
  writeFileSync(join(dir, "b.md"), "b")
  linkSync(file, join(dir, "same.md"))
  const place = fileIdentityOf(file)!
  const opens = (name: string) => {
    const fd = openSync(join(dir, name), "r")
    onTestFinished(() => closeSync(fd))
    return fd
  }
  expect(isSameOpenFile(opens("a.md"), file, place, nameOf)).toBe(true)
  expect(isSameOpenFile(opens("b.md"), file, place, nameOf)).toBe(false)
  expect(fileIdentityOf(join(dir, "gone.md"))).toBe(undefined)
  expect(fileIdentityOf(dir)).toBe(undefined)
})

import { execFileSync } from "node:child_process"
import { closeSync, existsSync, mkdirSync, symlinkSync, truncateSync, writeFileSync, writeSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { openFile, RefusedFile, readBytes, readOpened, readStart, readText } from "../../src/core/read-file.ts"
import { tempDir } from "../support/temp.ts"

test("reads a file completely up to the limit, and refuses one byte more", () => {
  const path = join(tempDir(), "file")
  writeFileSync(path, "zebrafinch")
  expect(readText(path, 10)).toBe("zebrafinch")
  expect(() => readText(path, 9)).toThrow(new RefusedFile("larger than 9 bytes"))
  expect(() => openFile(path, { maxBytes: 9 })).toThrow(RefusedFile)
  writeFileSync(path, "")
  expect(readText(path, 10)).toBe("")
})

test("states its limit in words", () => {
  const path = join(tempDir(), "file")
  writeFileSync(path, "")
  truncateSync(path, 2 ** 33)
  expect(() => readBytes(path, 64 << 10)).toThrow("larger than 64 kB")
  expect(() => readBytes(path, 16 << 20)).toThrow("larger than 16 MB")
  expect(() => openFile(path, { maxBytes: 2 ** 32 })).toThrow("larger than 4096 MB")
})

test("returns the first bytes of a file of any size, and all of a shorter one", () => {
  const path = join(tempDir(), "file")
  writeFileSync(path, "gitdir: x\n")
  expect(readStart(path, 4).toString()).toBe("gitd")
  expect(readStart(path, 4096).toString()).toBe("gitdir: x\n")
  truncateSync(path, 2 ** 40)
  expect(readStart(path, 4).toString()).toBe("gitd")
})

test("reads text that was added after the file was opened, within its limit", () => {
  const path = join(tempDir(), "file")
  writeFileSync(path, "a")
  const file = openFile(path)
  onTestFinished(() => closeSync(file.fd))
  writeFileSync(path, "a".repeat(100_000))
  expect(readOpened(file, 100_000)).toHaveLength(100_000)
  const again = openFile(path)
  onTestFinished(() => closeSync(again.fd))
  writeFileSync(path, "a".repeat(200_000))
  expect(() => readOpened(again, 150_000)).toThrow(RefusedFile)
})

test.skipIf(!existsSync("/proc/self/status"))("reads a file that wrongly claims to be empty, within its limit", () => {
  expect(readText("/proc/self/status", 64 << 10)).toMatch(/^Name:/)
  expect(() => readText("/proc/self/status", 100)).toThrow(RefusedFile)
})

describe.skipIf(process.platform === "win32")("anything that is not a regular file is refused immediately", () => {
  const NOT_REGULAR = new RefusedFile("not a regular file")

  test("a pipe that nobody writes into", () => {
    const pipe = join(tempDir(), "pipe")
    execFileSync("mkfifo", [pipe])
    expect(() => readText(pipe, 100)).toThrow(NOT_REGULAR)
  })

  test("a folder, a device, and links to them", () => {
    const dir = tempDir()
    mkdirSync(join(dir, "folder"))
    for (const [name, target] of [
      ["zero", "/dev/zero"],
      ["null", "/dev/null"],
      ["link", join(dir, "folder")],
    ] as const)
      symlinkSync(target, join(dir, name))
    for (const name of ["folder", "zero", "null", "link"])
      expect(() => readText(join(dir, name), 100)).toThrow(NOT_REGULAR)
  })

  test("a socket", async () => {
    const path = join(tempDir(), "s")
    const server = createServer()
    await new Promise<void>((done) => server.listen(path, done))
    onTestFinished(() => void server.close())
    expect(() => readText(path, 100)).toThrow(NOT_REGULAR)
  })

  test("a link, if links must not be followed", () => {
    const dir = tempDir()
    writeFileSync(join(dir, "file"), "text")
    symlinkSync("file", join(dir, "link"))
    expect(readText(join(dir, "link"), 100)).toBe("text")
    expect(() => readText(join(dir, "link"), 100, { follow: false })).toThrow("a symbolic link, not followed")
    symlinkSync("loop", join(dir, "loop"))
    expect(() => readText(join(dir, "loop"), 100)).toThrow("ELOOP")
  })

  test("a missing file gives the system's own error", () => {
    expect(() => readText(join(tempDir(), "none"), 100)).toThrow("ENOENT")
  })

  test("no file stays open, whatever the outcome", () => {
    const dir = tempDir()
    mkdirSync(join(dir, "folder"))
    writeFileSync(join(dir, "file"), "much too long")
    const next = () => {
      const { fd } = openFile(join(dir, "file"))
      closeSync(fd)
      return fd
    }
    const before = next()
    for (let i = 0; i < 100; i++) {
      expect(() => readText(join(dir, "folder"), 100)).toThrow(NOT_REGULAR)
      expect(() => readText(join(dir, "file"), 3)).toThrow(RefusedFile)
      expect(() => openFile(join(dir, "file"), { maxBytes: 3 })).toThrow(RefusedFile)
      readStart(join(dir, "file"), 3)
    }
    expect(next()).toBe(before)
  })
})

test("nothing can be written through it", () => {
  const path = join(tempDir(), "file")
  writeFileSync(path, "text")
  const { fd } = openFile(path)
  onTestFinished(() => closeSync(fd))
  expect(() => writeSync(fd, "x")).toThrow("EBADF")
})

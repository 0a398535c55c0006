import { spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { changeService, plistText, type ServiceContext, unitText } from "../../src/integrations/watch-service.ts"
import { tempDir, treeHash } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"
import { onTerminal } from "./terminal.ts"

/** A home with programs of the given names on its PATH that record their arguments and exit as specified. */
function homeWith(programs: Record<string, string>): { home: string; env: Record<string, string>; asked(): string[] } {
  const dir = tempDir()
  const home = join(dir, "home")
  mkdirSync(join(dir, "bin"), { recursive: true })
  mkdirSync(home)
  const log = join(dir, "asked")
  for (const [name, body] of Object.entries(programs)) {
    const file = join(dir, "bin", name)
    writeFileSync(file, `#!/bin/sh\necho "${name} $*" >> ${log}\n${body}\n`)
    chmodSync(file, 0o755)
  }
  const asked = () =>
    (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []).filter(
      (line) => !/show-environment/.test(line),
    )
  return { home, env: { PATH: `${join(dir, "bin")}:/usr/bin:/bin` }, asked }
}

function context(home: string, more: Partial<ServiceContext["machine"]> = {}): ServiceContext {
  return {
    machine: { home, env: {}, platform: "linux", ...more },
    dexHome: join(home, ".dex"),
    program: { node: "/opt/node 24/bin/node", script: `/opt/50%/"dex"/$HOME/dex.js` },
  }
}

test("install writes one file and starts it; uninstall restores every byte", async () => {
  const { home, env, asked } = homeWith({ systemctl: "exit 0" })
  writeFileSync(join(home, "something"), "else")
  await dex(home, ["sync"], env)
  const before = treeHash(home)
  const unit = join(home, ".config", "systemd", "user", "dex-watch.service")

  const shown = await dex(home, ["watch", "--install"], env)
  expect(shown.code).toBe(2)
  expect(shown.stderr).toMatch(/Nothing was changed.*--yes/)
  expect(shown.stdout).toContain(`Write ${unit}`)
  expect(shown.stdout).toContain("Run systemctl --user enable --now dex-watch.service")
  expect(treeHash(home)).toEqual(before)
  expect(asked()).toEqual([])

  const made = await dex(home, ["watch", "--install", "--yes"], { ...env, CODEX_HOME: "/else/codex" })
  expect(made).toMatchObject({
    code: 0,
    stdout: "The service is running. Its file is ~/.config/systemd/user/dex-watch.service.\n",
  })
  const text = readFileSync(unit, "utf8")
  expect(text).toContain(`ExecStart="${process.execPath}" "`)
  expect(text).toContain('Environment="CODEX_HOME=/else/codex"')
  expect(text).toMatch(/^Nice=10$/m)
  expect(text).toMatch(/^MemoryMax=\d+M$/m)
  expect(text).toMatch(/^Restart=on-failure$/m)
  expect(asked()).toEqual(["systemctl --user daemon-reload", "systemctl --user enable --now dex-watch.service"])
  // Installing again with other settings changes the file, but not what is removed later.
  expect((await dex(home, ["watch", "--install", "--yes"], env)).code).toBe(0)
  expect(readFileSync(unit, "utf8")).not.toContain("CODEX_HOME")
  // The running process is the earlier dex: enabling it does not restart it.
  const again = [
    "systemctl --user daemon-reload",
    "systemctl --user enable dex-watch.service",
    "systemctl --user restart dex-watch.service",
  ]
  expect(asked().slice(2)).toEqual(again)
  expect((await dex(home, ["watch", "--install", "--yes"], env)).code).toBe(0)
  expect(asked().slice(5)).toEqual(again)

  const gone = await dex(home, ["watch", "--uninstall", "--yes"], env)
  expect(gone.stdout).toMatch(/is stopped and .* is removed/)
  expect(asked().slice(-2)).toEqual([
    "systemctl --user disable --now dex-watch.service",
    "systemctl --user daemon-reload",
  ])
  expect(treeHash(home)).toEqual(before)
  expect(existsSync(join(home, ".config"))).toBe(false)
  expect((await dex(home, ["watch", "--uninstall", "--yes"], env)).stdout).toMatch(/There is no service at/)
})

test("asks for confirmation on a terminal", async () => {
  const { home, env, asked } = homeWith({ systemctl: "exit 0" })
  const run = await onTerminal(home, ["watch", "--install"], [[/start the service\?/, "n"]], 160, env.PATH)
  if (!run) return void console.log("NOT RUN: there is no program that makes a terminal")
  expect(run.screen).toContain("Nothing was changed.")
  expect(existsSync(join(home, ".config"))).toBe(false)
  expect(asked()).toEqual([])
})

test("does not touch a file that somebody changed, or that is not dex's", () => {
  const { home, env } = homeWith({ systemctl: "exit 0" })
  const here = context(home, { env })
  const unit = join(home, ".config", "systemd", "user", "dex-watch.service")
  changeService(here, "install", true)
  const changed = `${readFileSync(unit, "utf8")}\n[Service]\nNice=19\n`
  writeFileSync(unit, changed)
  expect(() => changeService(here, "uninstall", true)).toThrow(/was changed since/)
  expect(() => changeService(here, "install", true)).toThrow(/was not written by dex, or was changed/)
  expect(readFileSync(unit, "utf8")).toBe(changed)
})

test("removes a service that cannot be started", () => {
  const { home, env } = homeWith({ systemctl: '[ "$2" = enable ] && { echo "Unit is masked." >&2; exit 1; }; exit 0' })
  const before = treeHash(home)
  expect(() => changeService(context(home, { env }), "install", true)).toThrow(
    /enable --now .* failed: Unit is masked\./,
  )
  expect(treeHash(home)).toEqual(before)
})

test("without systemd, and on other systems, reports that, says what to do, and writes nothing", async () => {
  const { home, env } = homeWith({ systemctl: "echo 'Failed to connect to bus' >&2; exit 1" })
  const run = await dex(home, ["watch", "--install", "--yes"], env)
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(/no systemd session.*Nothing was written.*dex watch/)
  expect(() => changeService(context(home, { platform: "win32" }), "install", true)).toThrow(/this is win32.*dex watch/)
  expect(existsSync(join(home, ".config"))).toBe(false)
})

test("writes a unit that systemd accepts, whatever is in the paths", () => {
  const home = tempDir()
  const made = context(home, { env: { DEX_HOME: `${home}/a "b" 100% $x \\y`, CLAUDE_CONFIG_DIR: "two\nlines" } })
  const text = unitText(made)
  expect(text).toContain(`ExecStart="/opt/node 24/bin/node" "/opt/50%%/\\"dex\\"/$$HOME/dex.js" "watch"`)
  expect(text).toContain(`Environment="DEX_HOME=${home}/a \\"b\\" 100%% $$x \\\\y"`)
  expect(text).not.toContain("two")
  const unit = join(home, "dex-watch.service")
  writeFileSync(unit, unitText({ ...made, program: { node: process.execPath, script: "/opt/50%/dex.js" } }))
  const verified = spawnSync("systemd-analyze", ["verify", "--user", unit], {
    encoding: "utf8",
    env: { PATH: process.env.PATH ?? "", HOME: home, XDG_RUNTIME_DIR: home },
  })
  if (verified.error) return void console.log("NOT RUN: systemd-analyze is not here")
  expect(verified.stdout + verified.stderr).not.toMatch(/dex-watch\.service:/)
})

test("on macOS writes a property list and calls launchctl", () => {
  const { home, env, asked } = homeWith({ launchctl: "exit 0" })
  const here = context(home, { env: { ...env, DEX_HOME: "/a&b<c>" }, platform: "darwin" })
  const before = treeHash(home)
  const { service } = changeService(here, "install", true)
  expect(service.path).toBe(join(home, "Library", "LaunchAgents", "dev.dexctx.watch.plist"))
  const text = readFileSync(service.path, "utf8")
  expect(text).toBe(plistText(here))
  expect(text).toContain("<key>DEX_HOME</key><string>/a&#38;b&#60;c&#62;</string>")
  expect(text).toContain("<key>Nice</key><integer>10</integer>")
  changeService(here, "uninstall", true)
  expect(asked()).toEqual([
    expect.stringMatching(/^launchctl bootstrap gui\/\d+ .*dev\.dexctx\.watch\.plist$/),
    expect.stringMatching(/^launchctl bootout gui\/\d+\/dev\.dexctx\.watch$/),
  ])
  expect(treeHash(home)).toEqual(before)
})

test("on macOS a second install first removes the running service, and waits until it is gone", () => {
  // launchd refuses to add a service that is still ending, and to remove one that is not there.
  const { home, env, asked } = homeWith({
    launchctl: `loaded="$0.loaded" ending="$0.ending"
case "$1" in
  bootstrap)
    if [ -f "$ending" ]; then rm "$ending"; echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; fi
    if [ -f "$loaded" ]; then echo "already loaded" >&2; exit 5; fi
    touch "$loaded" ;;
  bootout)
    if [ ! -f "$loaded" ]; then echo "Boot-out failed: 3: No such process" >&2; exit 3; fi
    rm "$loaded"; touch "$ending"; exit 36 ;;
esac`,
  })
  const here = context(home, { env, platform: "darwin" })
  changeService(here, "install", true)
  const { service } = changeService({ ...here, program: { node: "/new/node", script: "/new/dex.js" } }, "install", true)
  expect(service.change).toBe("edit")
  expect(asked().map((line) => line.split(" ")[1])).toEqual(["bootstrap", "bootout", "bootstrap", "bootstrap"])
  expect(readFileSync(service.path, "utf8")).toContain("/new/dex.js")
  // Somebody removed it by hand: it is still added.
  spawnSync("launchctl", ["bootout"], { env })
  spawnSync("launchctl", ["bootstrap"], { env })
  changeService(here, "install", true)
})

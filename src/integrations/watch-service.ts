import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { userInfo } from "node:os"
import { join } from "node:path"
import type { Machine } from "../agents/kit/connector.ts"
import { DexError, messageOf } from "../core/error.ts"
import { foldersToMake, readEditable, removeFile, sha256, writeText } from "./files.ts"
import type { Program } from "./launcher.ts"

// Installs and removes `dex watch` as a user's service, which is a file that is registered with systemd or launchd.

export type ServiceContext = { machine: Machine; dexHome: string; program: Program }
export type ServiceChange = {
  service: {
    change: "none" | "create" | "edit" | "remove"
    path: string
    content?: string
    commands: string[][]
    note?: string
  }
  /** True if nothing was changed yet, because the change must be confirmed first. */
  asked?: boolean
}

/**
 * Installs or removes the service. Without `yes` it only describes the change. Throws a DexError if this system has no service
 * manager.
 */
export function changeService(context: ServiceContext, wanted: "install" | "uninstall", yes: boolean): ServiceChange {
  return wanted === "install" ? install(context, yes) : uninstall(context, yes)
}

function install(context: ServiceContext, yes: boolean): ServiceChange {
  const manager = managerOf(context)
  const before = readEditable(manager.path)
  if (before !== undefined && !isOurs(context, before) && before !== manager.content)
    throw new DexError(
      "service",
      `${manager.path} exists and was not written by dex, or was changed since. Remove it first, then run this again.`,
    )
  const change = before === undefined ? "create" : before === manager.content ? "none" : "edit"
  const { path, content } = manager
  // A running service still uses the old dex, even if the file is unchanged, so it is restarted.
  const commands = before === undefined ? manager.start : manager.restart
  const service = { change, path, content, commands, note: manager.note || undefined } as const
  if (!yes) return { service, asked: true }
  if (change !== "none") {
    const recorded = readRecord(context)
    const newFolders = foldersToMake(path)
    writeText(path, content)
    writeRecord(context, { path, sha256: sha256(content), made_folders: recorded?.made_folders ?? newFolders })
  }
  try {
    for (const command of commands) {
      if (command === manager.unload) execute(command, context)
      else run(command, context, before !== undefined && manager.unload ? END_TIMEOUT_MS : 0)
    }
  } catch (error) {
    if (change === "create") removeServiceFile(context, path)
    throw error
  }
  return { service }
}

function uninstall(context: ServiceContext, yes: boolean): ServiceChange {
  const manager = managerOf(context)
  const { path, stop } = manager
  const before = readEditable(path)
  if (before === undefined) return { service: { change: "none", path, commands: [] } }
  if (!isOurs(context, before))
    throw new DexError(
      "service",
      `${path} was changed since dex wrote it, so dex does not touch it. To remove it yourself: ${stop[0]!.join(" ")}, then delete the file.`,
    )
  const commands = [...stop, ...manager.reload]
  if (!yes) return { service: { change: "remove", path, commands }, asked: true }
  for (const command of stop) run(command, context)
  removeServiceFile(context, path)
  for (const command of manager.reload) run(command, context)
  return { service: { change: "remove", path, commands } }
}

type ServiceManager = {
  path: string
  content: string
  start: string[][]
  /** The commands to use instead of `start` if the service is already installed, whether it runs or not. */
  restart: string[][]
  /**
   * The command in `restart` that stops the service. It fails if no service is running, and returns before the service has ended.
   */
  unload?: string[]
  stop: string[][]
  reload: string[][]
  note?: string
}

function managerOf(context: ServiceContext): ServiceManager {
  const { platform } = context.machine
  if (platform === "darwin") return launchd(context)
  if (platform === "linux" && hasSystemd(context)) return systemd(context)
  throw new DexError(
    "no_service",
    platform === "linux"
      ? "There is no systemd session here (systemctl --user does not answer), as in most containers. Nothing was written. Start `dex watch` in a terminal or in tmux, or let this machine's init system start it."
      : `dex can create services only for systemd and launchd, and this is ${platform}. Nothing was written. Start \`dex watch\` in a terminal, or let the system's own scheduler start it when you log in.`,
  )
}

/** How long to wait for the previous `dex watch` to end, in milliseconds. Usually it ends sooner. */
const END_TIMEOUT_MS = 5_000
const RETRY_INTERVAL_MS = 200

const SYSTEMD_UNIT = "dex-watch.service"
const LAUNCHD_LABEL = "dev.dexctx.watch"

function systemd(context: ServiceContext): ServiceManager {
  const { machine } = context
  const config = machine.env.XDG_CONFIG_HOME || join(machine.home, ".config")
  const ctl = (...args: string[]) => ["systemctl", "--user", ...args]
  return {
    path: join(config, "systemd", "user", SYSTEMD_UNIT),
    content: unitText(context),
    start: [ctl("daemon-reload"), ctl("enable", "--now", SYSTEMD_UNIT)],
    restart: [ctl("daemon-reload"), ctl("enable", SYSTEMD_UNIT), ctl("restart", SYSTEMD_UNIT)],
    stop: [ctl("disable", "--now", SYSTEMD_UNIT)],
    reload: [ctl("daemon-reload")],
    note: "It runs while you are logged in. To keep it running after that: loginctl enable-linger",
  }
}

/** The file for systemd. Its memory limit covers two processes. The process that reads is designed to stay below 300 MB. */
export function unitText(context: ServiceContext): string {
  const { machine, program } = context
  return `# Written by \`dex watch --install\`; \`dex watch --uninstall\` removes it.
[Unit]
Description=dex keeps the memory of your coding agents current
StartLimitIntervalSec=600
StartLimitBurst=5

[Service]
ExecStart=${[program.node, program.script, "watch"].map(unitWord).join(" ")}
WorkingDirectory=${machine.home.replaceAll("%", "%%")}
${Object.entries(environmentOf(context))
  .map(([name, value]) => `Environment=${unitWord(`${name}=${value}`)}\n`)
  .join("")}Nice=10
IOSchedulingClass=idle
MemoryHigh=450M
MemoryMax=600M
Restart=on-failure
RestartSec=15
NoNewPrivileges=yes

[Install]
WantedBy=default.target
`
}

/** Quotes a word for systemd, and escapes the characters that have a meaning inside quotes. */
function unitWord(word: string): string {
  return `"${word.replace(/["\\]/g, "\\$&").replaceAll("%", "%%").replaceAll("$", "$$$$")}"`
}

function launchd(context: ServiceContext): ServiceManager {
  const { machine, dexHome } = context
  const path = join(machine.home, "Library", "LaunchAgents", `${LAUNCHD_LABEL}.plist`)
  const domain = `gui/${userInfo().uid}`
  const [load, unload] = [
    ["launchctl", "bootstrap", domain, path],
    ["launchctl", "bootout", `${domain}/${LAUNCHD_LABEL}`],
  ]
  return {
    path,
    content: plistText(context),
    start: [load],
    restart: [unload, load],
    unload,
    stop: [unload],
    reload: [],
    note: `Errors are written to ${join(dexHome, "watch.log")}`,
  }
}

export function plistText(context: ServiceContext): string {
  const { machine, program, dexHome } = context
  const string = (text: string) => `<string>${escapeXml(text)}</string>`
  const environment = Object.entries(environmentOf(context))
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by dex watch --install; dex watch --uninstall removes it. -->
<plist version="1.0">
<dict>
  <key>Label</key>${string(LAUNCHD_LABEL)}
  <key>ProgramArguments</key><array>${[program.node, program.script, "watch"].map(string).join("")}</array>
  <key>WorkingDirectory</key>${string(machine.home)}
  <key>EnvironmentVariables</key><dict>${environment.map(([name, value]) => `<key>${name}</key>${string(value)}`).join("")}</dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ThrottleInterval</key><integer>60</integer>
  <key>Nice</key><integer>10</integer>
  <key>ProcessType</key>${string("Background")}
  <key>LowPriorityIO</key><true/>
  <key>StandardOutPath</key>${string("/dev/null")}
  <key>StandardErrorPath</key>${string(join(dexHome, "watch.log"))}
</dict>
</plist>
`
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/**
 * The environment variables that say where agents and dex store their files. They are written into the service's file, because a
 * service does not get the environment of a shell.
 */
const NEEDED_VARIABLES = [
  "DEX_HOME",
  "CLAUDE_CONFIG_DIR",
  "CODEX_HOME",
  "GEMINI_CLI_HOME",
  "OPENCODE_DB",
  "XDG_CONFIG_HOME",
  "XDG_DATA_HOME",
]

function environmentOf({ machine }: ServiceContext): Record<string, string> {
  const entries = NEEDED_VARIABLES.flatMap((name): [string, string][] => {
    const value = machine.env[name]
    return value && !/[\r\n]/.test(value) ? [[name, value]] : []
  })
  return Object.fromEntries(entries)
}

type WrittenService = { path: string; sha256: string; made_folders: string[] }

function recordFile({ dexHome }: ServiceContext): string {
  return join(dexHome, "watch-service.json")
}

function writeRecord(context: ServiceContext, written: WrittenService): void {
  writeText(recordFile(context), `${JSON.stringify(written, undefined, 2)}\n`)
}

function readRecord(context: ServiceContext): WrittenService | undefined {
  if (!existsSync(recordFile(context))) return undefined
  try {
    const { path, sha256, made_folders } = JSON.parse(
      readFileSync(recordFile(context), "utf8"),
    ) as Partial<WrittenService>
    if (typeof path !== "string" || typeof sha256 !== "string" || !Array.isArray(made_folders)) return undefined
    return { path, sha256, made_folders: made_folders.filter((folder) => typeof folder === "string") }
  } catch {
    return undefined // the service file is then treated as somebody else's
  }
}

function isOurs(context: ServiceContext, content: string): boolean {
  return readRecord(context)?.sha256 === sha256(content)
}

function removeServiceFile(context: ServiceContext, path: string): void {
  removeFile(path, readRecord(context)?.made_folders ?? [])
  removeFile(recordFile(context), [])
}

function hasSystemd({ machine }: ServiceContext): boolean {
  const result = spawnSync("systemctl", ["--user", "show-environment"], { env: machine.env as NodeJS.ProcessEnv })
  return result.status === 0
}

/**
 * Runs a command, and retries it for up to `retryMs`: launchd rejects a service while its predecessor is still ending, and does
 * not report when the predecessor has ended.
 */
function run(command: string[], context: ServiceContext, retryMs = 0): void {
  const until = performance.now() + retryMs
  let result = execute(command, context)
  while (result.status !== 0 && performance.now() < until) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_INTERVAL_MS)
    result = execute(command, context)
  }
  if (result.status === 0) return
  const why = result.error
    ? messageOf(result.error)
    : (result.stderr || result.stdout).trim() || `exit ${result.status}`
  throw new DexError("service", `\`${command.join(" ")}\` failed: ${why}`)
}

function execute([program, ...args]: string[], { machine }: ServiceContext) {
  return spawnSync(program!, args, { env: machine.env as NodeJS.ProcessEnv, encoding: "utf8" })
}

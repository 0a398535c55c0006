import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { createServer } from "node:net"
import { homedir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { onTestFinished } from "vitest"
import { ordinaryUser } from "./start-postgres.ts"

// Starts one real OpenSearch for all tests of a run. It ends a second after the run.

const VERSION = "3.6.0"
/** On a disk, unlike the temporary folder of tests. */
const FOLDER = "/tmp"
const MIN_JAVA = 21
const START_MS = 240_000
const POLL_MS = 200

/** The address of a server: the one that DEX_TEST_OPENSEARCH_URL names, or the one of this run. Throws if it cannot be started. */
export async function opensearchAddress(): Promise<string> {
  if (process.env.DEX_TEST_OPENSEARCH_URL) return process.env.DEX_TEST_OPENSEARCH_URL
  // All workers of a run have the same parent. The first that makes the folder starts the server.
  const folder = join(FOLDER, `dex-opensearch-of-${process.ppid}`)
  const addressFile = join(folder, "address")
  if (isFirst(folder)) {
    try {
      const address = await startServer(join(folder, "node"), process.ppid)
      writeFileSync(`${addressFile}.new`, address)
      renameSync(`${addressFile}.new`, addressFile)
    } catch (error) {
      writeFileSync(join(folder, "problem"), String(error))
    }
  }
  for (const last = Date.now() + START_MS; Date.now() < last; await pause(POLL_MS)) {
    if (existsSync(addressFile)) return readFileSync(addressFile, "utf8")
    if (existsSync(join(folder, "problem"))) break
  }
  const problem = existsSync(join(folder, "problem"))
    ? readFileSync(join(folder, "problem"), "utf8")
    : "It took too long."
  throw new Error(`OpenSearch could not be started: ${problem}`)
}

function isFirst(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o755 })
    return true
  } catch {
    return false
  }
}

/** Starts a server that ends when the process `parent` has ended. Returns its address. */
async function startServer(folder: string, parent: number): Promise<string> {
  const ports = { http: await freePort(), transport: await freePort() }
  const { isUp } = startNode(folder, parent, ports, { "discovery.type": "single-node" })
  await isUp
  return `http://127.0.0.1:${ports.http}`
}

export type TestNode = {
  name: string
  address: string
  /** The folder of its files. */
  data: string
  /** The folder of its logs. */
  logs: string
  /** Ends it at once, as a power failure does. */
  kill(): void
  signal(signal: "SIGSTOP" | "SIGCONT"): void
  start(): Promise<void>
}

/**
 * Starts a cluster of several nodes, which end with the test. `reachedAt` is the port at which the others reach a node that listens
 * at this one.
 */
export async function startNodes(
  count: number,
  reachedAt: (port: number) => Promise<number> = async (port) => port,
  more: Record<string, string> = {},
): Promise<TestNode[]> {
  const folder = mkdtempSync(join(FOLDER, "dex-opensearch-nodes-"))
  chmodSync(folder, 0o755)
  const names = Array.from({ length: count }, (_, i) => `n${i + 1}`)
  const ports = await Promise.all(names.map(async () => ({ http: await freePort(), transport: await freePort() })))
  const published = await Promise.all(ports.map(({ transport }) => reachedAt(transport)))
  const settings = {
    ...more,
    "discovery.seed_hosts": JSON.stringify(published.map((port) => `127.0.0.1:${port}`)),
    "cluster.initial_cluster_manager_nodes": JSON.stringify(names),
  }
  const running = new Map<string, ChildProcess>()
  const signal = (name: string, sent: NodeJS.Signals) => {
    const { pid } = running.get(name) ?? {}
    if (pid !== undefined) process.kill(-pid, sent)
  }
  const kill = (name: string) => {
    signal(name, "SIGKILL")
    running.delete(name)
  }
  onTestFinished(() => {
    for (const name of running.keys()) kill(name)
    rmSync(folder, { recursive: true, force: true })
  })
  const start = (name: string, i: number) => {
    const { child, isUp } = startNode(join(folder, name), process.pid, ports[i]!, {
      ...settings,
      "node.name": name,
      "transport.publish_port": String(published[i]!),
    })
    running.set(name, child)
    return isUp
  }
  await Promise.all(names.map(start))
  return names.map((name, i) => ({
    name,
    address: `http://127.0.0.1:${ports[i]!.http}`,
    data: join(folder, name, "data"),
    logs: join(folder, name, "logs"),
    kill: () => kill(name),
    signal: (sent) => signal(name, sent),
    start: () => start(name, i),
  }))
}

type Ports = { http: number; transport: number }

function startNode(folder: string, parent: number, { http: port, transport }: Ports, more: Record<string, string>) {
  const server = unpackedServer()
  const user = ordinaryUser()
  for (const name of ["config", "data", "logs", "tmp"]) mkdirSync(join(folder, name), { recursive: true })
  const jvm = readFileSync(join(server, "config/jvm.options"), "utf8").replaceAll(
    /(?<==|:)(logs|data)(?=\/|$)/gm,
    `${folder}/$1`,
  )
  writeFileSync(join(folder, "config/jvm.options"), jvm)
  writeFileSync(join(folder, "config/log4j2.properties"), readFileSync(join(server, "config/log4j2.properties")))
  const settings = {
    "cluster.name": `dex-${parent}`,
    ...more,
    "path.data": join(folder, "data"),
    "path.logs": join(folder, "logs"),
    "network.host": "127.0.0.1",
    "http.port": port,
    "transport.port": transport,
    "cluster.routing.allocation.disk.threshold_enabled": false,
    "action.auto_create_index": false,
  }
  const yaml = Object.entries(settings).map(([name, value]) => `${name}: ${value}\n`)
  writeFileSync(join(folder, "config/opensearch.yml"), yaml.join(""))
  if (user) for (const path of [join(folder, ".."), ...globSync(`${folder}/**`)]) chownSync(path, user.uid, user.gid)
  const env = {
    PATH: "/usr/bin:/bin",
    HOME: folder,
    OPENSEARCH_JAVA_HOME: javaHome(),
    OPENSEARCH_PATH_CONF: join(folder, "config"),
    OPENSEARCH_TMPDIR: join(folder, "tmp"),
    OPENSEARCH_JAVA_OPTS: "-Xms512m -Xmx512m -XX:TieredStopAtLevel=1 -XX:-AlwaysPreTouch",
  }
  const untilParentEnds = `"$0/bin/opensearch" > "${folder}/out.log" 2>&1 & server=$!
    while [ -d /proc/${parent} ] && kill -0 $server; do sleep 1; done; kill $server; wait $server; rm -rf "${join(folder, "..")}"`
  const child = spawn("sh", ["-c", untilParentEnds, server], {
    ...user,
    cwd: server,
    env,
    stdio: "ignore",
    detached: true,
  })
  child.unref()
  const isUp = untilReady(child, `http://127.0.0.1:${port}`, join(folder, "out.log"))
  return { child, isUp }
}

async function untilReady(child: ChildProcess, address: string, log: string): Promise<void> {
  for (const last = Date.now() + START_MS; child.exitCode === null && Date.now() < last; await pause(POLL_MS))
    if (await isReady(address)) return
  throw new Error(existsSync(log) ? readFileSync(log, "utf8").slice(-2_000) : "it wrote no log")
}

async function isReady(address: string): Promise<boolean> {
  try {
    return (await fetch(`${address}/_cluster/health`)).ok
  } catch {
    return false
  }
}

/** Unpacks the server once for each machine. Maven fetches it. */
function unpackedServer(): string {
  const folder = join(FOLDER, `dex-opensearch-${VERSION}`)
  const server = join(folder, `opensearch-${VERSION}`)
  if (existsSync(server)) return server
  const group = "org/opensearch/distribution/integ-test-zip/opensearch"
  const zip = join(homedir(), ".m2/repository", group, VERSION, `opensearch-${VERSION}.zip`)
  const artifact = `org.opensearch.distribution.integ-test-zip:opensearch:${VERSION}:zip`
  if (!existsSync(zip))
    execFileSync("mvn", ["-q", "-B", "dependency:get", `-Dartifact=${artifact}`, "-Dtransitive=false"])
  const unpacking = mkdtempSync(`${folder}-`)
  execFileSync("chmod", ["755", unpacking])
  execFileSync("unzip", ["-q", zip, "-d", unpacking])
  rmSync(folder, { recursive: true, force: true })
  renameSync(unpacking, folder)
  return server
}

function javaHome(): string {
  const programs = process.env.OPENSEARCH_JAVA_HOME ? [] : globSync("/usr/lib/jvm/*/bin/java")
  const homes = programs.map((program) => ({ home: join(program, "../.."), version: javaVersion(program) }))
  const newest = homes.sort((a, b) => b.version - a.version)[0]
  if (process.env.OPENSEARCH_JAVA_HOME) return process.env.OPENSEARCH_JAVA_HOME
  if (!newest || newest.version < MIN_JAVA) throw new Error(`Java ${MIN_JAVA} or newer was not found in /usr/lib/jvm.`)
  return newest.home
}

function javaVersion(program: string): number {
  const text = execFileSync("sh", ["-c", `"$0" -version 2>&1`, program], { encoding: "utf8" })
  return Number(/"(\d+)/.exec(text)?.[1] ?? 0)
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0))
    })
  })
}

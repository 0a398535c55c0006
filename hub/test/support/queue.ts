import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { call, putSession, writer } from "../../../test/support/claude-code.ts"
import { DEX, dex } from "../../../test/support/dex.ts"
import { makeRepository, type Repository } from "../../../test/support/repository.ts"
import { tempDir } from "../../../test/support/temp.ts"
import { disableMember } from "../../src/store/people.ts"
import { hubEnv, startHub, tokenFor } from "./server.ts"
import { newMember, newTeam, newTenant } from "./team.ts"

export const ID = "11111111-2222-4333-8444-555555555555"
export const REF = `ann/claude_code:${ID}`
export const LINES = Array.from(
  { length: 12 },
  (_, i) => `\tconst quokka${i} = waitFor("quokka", ${i * 7}, options.kept${i})`,
)
const REMOTE = "git@git.test:acme/api.git"

/** Ann's agent changed a file and committed it; she shared that, and left. Bob has the code and access to the project; cy does not. */
export async function whoLeft(env: Record<string, string> = {}) {
  const team = await newTeam()
  const tenant = await newTenant(team)
  const [ann, bob, cy] = [
    await newMember(team, tenant, "ann"),
    await newMember(team, tenant, "bob"),
    await newMember(team, tenant, "cy"),
  ]
  const hub = await startHub(hubEnv(team, env))
  const home = tempDir()
  const repository = makeRepository(join(home, "code/api"))
  repository.git("remote", "add", "origin", REMOTE)
  const commit = changedByAgent(home, repository)
  const laptop =
    (at: string) =>
    (args: string[], more: Record<string, string> = {}, input?: string) =>
      dex(at, args, more, DEX, input, join(at, "code/api"))
  const login = async (at: string, who: typeof ann) =>
    must(await laptop(at)(["hub", "login", hub.url, "--token-stdin"], {}, await tokenFor(team, who)))
  const asAnn = laptop(home)
  must(await asAnn(["sync"]))
  await login(home, ann)
  must(await asAnn(["hub", "share", "--yes"]))
  const cloned = async (who: typeof ann) => {
    const other = tempDir()
    execFileSync("git", ["clone", "-q", repository.folder, join(other, "code/api")])
    execFileSync("git", ["remote", "set-url", "origin", REMOTE], { cwd: join(other, "code/api") })
    await login(other, who)
    return { who, home: other, folder: join(other, "code/api"), run: laptop(other) }
  }
  const people = { bob: await cloned(bob), cy: await cloned(cy) }
  await team.asOwner(
    "insert into hub.project_grant (tenant, project, member, level) select $1, id, $2, 'read' from hub.project",
    [tenant, bob.member],
  )
  await disableMember(team.asOwner, tenant, "ann")
  return { team, tenant, hub, ann, asAnn, commit, ...people }
}

function must({ code, stderr }: { code: number | null; stderr: string }): void {
  if (code !== 0) throw new Error(stderr)
}

function changedByAgent(home: string, { folder, git, gitAt }: Repository): string {
  git("commit", "-q", "--allow-empty", "-m", "start")
  const session = writer({ sessionId: ID, cwd: folder }, "q")
  session.prompt("Orders are lost when the queue is restarted, please find out why and repair that")
  session.prompt("we should always store the queue in Postgres")
  const filePath = join(folder, "src/queue.ts")
  session.answer("m_1", [call("e1", "Write", { file_path: filePath, content: LINES.join("\n") })])
  const lines = LINES.map((line) => `+${line}`)
  const patch = { oldStart: 1, oldLines: 0, newStart: 1, newLines: lines.length, lines }
  session.result("e1", "done", { toolUseResult: { type: "create", filePath, structuredPatch: [patch] } })
  session.answer("m_2", [call("t1", "Bash", { command: "npm test 2>&1" })])
  const passed = "Tests  3 passed (3)"
  session.result("t1", passed, { toolUseResult: { stdout: passed, stderr: "" } })
  mkdirSync(join(folder, "src"), { recursive: true })
  writeFileSync(filePath, `${LINES.join("\n")}\n`)
  git("add", "-A")
  gitAt("2026-01-02T10:20:00Z", "commit", "-q", "-m", "queue: survives a restart")
  const made = git("rev-parse", "HEAD")
  const printed = `[main ${made.slice(0, 7)}] queue: survives a restart\n 1 file changed`
  session.answer("m_3", [call("c1", "Bash", { command: "git commit -am 'queue: survives a restart'" })])
  session.result("c1", printed, { toolUseResult: { stdout: printed, stderr: "" } })
  putSession(home, session.records, ID)
  return made
}

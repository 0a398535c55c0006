import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { expect, onTestFinished } from "vitest"
import { hubAdmin } from "../../../src/cli/hub-admin.ts"
import { writeHub } from "../../../src/config/hub.ts"
import { isDexError } from "../../../src/core/error.ts"
import { tempDir } from "../../../test/support/temp.ts"
import { createHubApp } from "../../src/http/app.ts"
import { serveApp } from "../../src/http/serve.ts"
import { openLogin } from "../../src/login/open.ts"
import { createAnswers } from "../../src/search/answer.ts"
import { createFollower } from "../../src/search/follow.ts"
import { openFts5 } from "../../src/search/fts5.ts"
import type { Search } from "../../src/search/pool.ts"
import type { OidcSettings } from "../../src/settings.ts"
import type { Database } from "../../src/store/connection.ts"
import { firstOperator } from "../../src/store/operators.ts"
import { HubProblem } from "../../src/store/problem.ts"
import { hubEnv, request, tokenFor } from "./server.ts"
import { API } from "./share.ts"
import { newMember, newProject, newTeam, newTenant } from "./team.ts"

/** The address of a hub with an identity provider, wherever it listens. */
export const HUB_URL = "https://hub.example.com"
const MAIN = join(import.meta.dirname, "../../src/main.ts")

/** Answers in this process, once the index is up to date. */
function searchHere(db: Database): Search {
  const data = tempDir()
  const follower = createFollower(db, data)
  const answers = createAnswers({ db, words: openFts5(data), folder: tempDir(), version: "0" })
  onTestFinished(() => {
    answers.close()
    follower.close()
  })
  let last: Promise<unknown> = Promise.resolve()
  const ask: Search["ask"] = async (question) => {
    while (!(await follower.step()));
    const answer = await answers.answer(question)
    if ("output" in answer) return answer.output
    throw new HubProblem(answer.problem.status, answer.problem.code, answer.problem.message)
  }
  return {
    ask: (question) => {
      const answered = last.then(() => ask(question))
      last = answered.catch(() => {})
      return answered
    },
    state: () => ({ waiting: 0, drops: { expected: 0, unexpected: 0 }, lags: [], isBuilt: true }),
    close: async () => {},
  }
}

/** ann and bob share a project, eve is an admin, fay an auditor, and all of them use the hub over HTTP. */
export async function hubWithPeople(more: Record<string, string> = {}, oidc?: Omit<OidcSettings, "url">) {
  const team = await newTeam()
  const tenant = await newTenant(team, "acme")
  const [ann, bob, eve, fay] = [
    await newMember(team, tenant, "ann"),
    await newMember(team, tenant, "bob"),
    await newMember(team, tenant, "eve", "admin"),
    await newMember(team, tenant, "fay", "auditor"),
  ]
  await newProject(team, tenant, API, { own: [ann], write: [bob] })
  const env = hubEnv(team, more)
  const lines: string[] = []
  const log = (event: object) => void lines.push(JSON.stringify(event))
  const { db, masterKey } = team
  const login = oidc && openLogin({ settings: { ...oidc, url: HUB_URL }, db, masterKey, log })
  const app = createHubApp({ db, search: searchHere(db), version: "0", log, ...(login && { login }) })
  const serving = await serveApp(app, { host: "127.0.0.1", port: 0 })
  onTestFinished(async () => void (await serving.close()))
  const hub = { url: `http://127.0.0.1:${serving.port}`, log: lines }
  const tokens = {
    ann: await tokenFor(team, ann),
    bob: await tokenFor(team, bob),
    eve: await tokenFor(team, eve, ["push", "read", "admin"]),
    fay: await tokenFor(team, fay, ["read"]),
  }
  const call = (token: string | undefined, method: string, path: string, body?: unknown) =>
    request(hub.url, token, method, path, body)
  const as = (who: keyof typeof tokens, method: string, path: string, body?: unknown) =>
    call(tokens[who], method, path, body)
  const mcp = async (token: string | undefined, name: string, input: object) => {
    const response = await fetch(`${hub.url}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const homes = { operator: tempDir(), eve: tempDir() }
  writeHub({ dir: homes.eve }, { address: hub.url, token: tokens.eve, consents: [] })
  const first = await firstOperator(team.asOwner, "olga", false)
  await hubAdmin({ dir: homes.operator }, ["login", hub.url], async () => ("code" in first ? first.code : ""))
  /** Runs `dex hub admin` as the operator olga or the admin eve. */
  const admin =
    (dir: string) =>
    async (...words: string[]) => {
      try {
        return { code: 0, stdout: await hubAdmin({ dir }, words, async () => ""), stderr: "" }
      } catch (error) {
        if (!isDexError(error)) throw error
        return { code: 2, stdout: "", stderr: error.message }
      }
    }
  /** Runs `dex-hub` with the owner's address. */
  const owner = async (...args: string[]) => {
    const child = spawn(process.execPath, [MAIN, ...args], { env: { ...env, DEX_HUB_OWNER_URL: team.owner } })
    const ended = once(child, "exit")
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
    return { code: (await ended)[0] as number, stdout, stderr }
  }
  const found = async (who: keyof typeof tokens, query: string, count = 1) =>
    expect((await as(who, "POST", "/v1/tools/search", { query })).body).toMatchObject({ results: { length: count } })
  return {
    ...{ team, tenant, ann, bob, eve, fay, hub, tokens, call, as, mcp, owner, found },
    operator: admin(homes.operator),
    admin: admin(homes.eve),
  }
}

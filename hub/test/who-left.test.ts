import { describe, expect, test } from "vitest"
import { modelServer } from "../../test/support/model-server.ts"
import { hasPostgres } from "./support/postgres.ts"
import { REF, whoLeft } from "./support/queue.ts"

const QUESTION = "where should we store the queue"

describe.skipIf(!hasPostgres)("the knowledge of a member who left", () => {
  test("is found by dex ask, cited with their name, and only by those who may read it", async () => {
    const { hub, bob, cy } = await whoLeft()
    const ask = (who: typeof bob, env = {}) => who.run(["ask", QUESTION, "--team"], env)
    await expect.poll(async () => (await ask(bob)).code).toBe(0)
    const quoted = await ask(bob)
    expect(quoted.stdout).toContain("we should always store the queue in Postgres")
    expect(quoted.stdout).toContain(`${REF}#2`)

    // Bob's own model answers. Its answer is checked, and the hub is asked for more.
    const server = await modelServer(({ body }, turn) => {
      const shown = body.messages.map(({ content }) => content ?? "").join("\n")
      const n = /\[(\d+)\] ann\/claude_code:[\w-]+#2 /.exec(shown)?.[1]
      if (turn === 0) return [{ calls: [{ id: "c1", name: "read", arguments: JSON.stringify({ ref: `${REF}#2` }) }] }]
      return [{ text: `The queue is stored in Postgres [${n}]. It is stored in Redis [${n}].` }]
    })
    const answer = await ask(bob, { DEX_LLM_PROVIDER: server.url })
    expect(answer.stdout).toMatch(
      /^Confidence: \w+\. Written by a model from these sources\.\n\nThe queue is stored in Postgres \[\d+\]\.\n/,
    )
    expect(answer.stdout).not.toContain("Redis")
    expect(answer.stdout).toContain(`${REF}#2`)
    const read = server.requests.at(-1)!.body.messages.at(-1)!.content
    expect(read).toContain("please find out why and repair that")

    const nothing = await ask(cy)
    expect([nothing.code, nothing.stdout]).toEqual([1, ""])
    expect(nothing.stderr).not.toMatch(/ann|queue is/)
    const documents = await bob.run(["ask", QUESTION, "--team", "--in", "docs"])
    expect([documents.code, documents.stderr]).toEqual([2, expect.stringContaining("no documents")])
    await hub.kill()
    const alone = await ask(bob)
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining("cannot be reached")])
  })

  test("is found by dex blame and dex why, with their name, and not by members without access", async () => {
    const { hub, bob, cy, commit } = await whoLeft()
    const blame = (who: typeof bob, ...args: string[]) => who.run(["blame", ...args])
    // Bob's own machine has nothing of it, and says where to ask next.
    const here = await blame(bob, "src/queue.ts:3")
    expect([here.code, here.stderr]).toEqual([1, expect.stringContaining("add --team")])
    expect((await bob.run(["why", commit])).stderr).toContain("add --team")

    await expect.poll(async () => (await blame(bob, "src/queue.ts:3", "--team")).code).toBe(0)
    const line = await blame(bob, "src/queue.ts:3", "--team")
    expect(line.stdout).toMatch(/^p ann\/claude_code:11111111#\d+ {2}Claude Code .* 3\) +const quokka2/)
    expect(line.stderr).toContain("from your team's hub: 1 (ann); from this machine: 0")
    const whole = JSON.parse((await blame(bob, "src/queue.ts", "--team", "--json")).stdout)
    expect(whole).toMatchObject({ total: 12, proved: 12 })
    const attribution = { level: "proved", reason: "wrote_line", conversation: REF, agent: "Claude Code" }
    for (const one of whole.lines) expect(one).toMatchObject(attribution)
    const made = JSON.parse((await blame(bob, commit, "--team", "--json")).stdout)
    expect(made.commits).toMatchObject([{ commit, level: "proved", reason: "ran_commit", conversation: REF }])
    const [ref] = /ann\/claude_code:11111111#\d+/.exec(line.stdout)!
    expect((await bob.run(["show", ref])).code).toBe(0)

    const why = await bob.run(["why", "src/queue.ts:3", "--team"])
    expect(why.stdout).toContain(`claude_code · 2026-01-02 10:00 · ${REF}`)
    expect(why.stdout).toMatch(/Asked\n +“Orders are lost[^”]+” #\d+\n/)
    expect(why.stdout).toMatch(/Decided\n +“we should always store the queue in Postgres” #\d+\n/)
    expect(why.stdout).toMatch(/Tests\n +npm test: passed #\d+\n/)
    const server = await modelServer(({ body }) => {
      const shown = body.messages.map(({ content }) => content ?? "").join("\n")
      const n = /\[(\d+)\] ann\/claude_code:[\w-]+#2 /.exec(shown)?.[1]
      return [{ text: `The queue is stored in Postgres [${n}]. It is stored in Redis [${n}].` }]
    })
    const prose = JSON.parse(
      (await bob.run(["why", commit, "--team", "--json"], { DEX_LLM_PROVIDER: server.url })).stdout,
    )
    expect(prose.answer).toMatchObject({ text: expect.stringMatching(/^The queue is stored in Postgres \[\d+\]\.$/) })
    expect(prose.answer.sources).toMatchObject([{ ref: `${REF}#2` }])

    for (const args of [
      ["blame", "src/queue.ts"],
      ["blame", commit],
      ["why", commit],
      ["why", "src/queue.ts:3"],
    ]) {
      const nothing = await cy.run([...args, "--team", "--json"])
      expect([nothing.code, nothing.stdout]).toEqual([1, expect.not.stringMatching(/ann|1{8}|Orders|Postgres/)])
      expect(nothing.stderr).not.toMatch(/ann\b|1{8}/)
    }
    await hub.kill()
    const alone = await blame(bob, "src/queue.ts:3", "--team")
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining("cannot be reached")])
  })
})

import { Buffer } from "node:buffer"
import { describe, expect, test } from "vitest"
import { redactRecord, redactText } from "../../src/redact/redact.ts"
import { CONTEXTS, readable, WHOLE_CONTEXTS } from "./contexts.ts"
import { HELD_OUT } from "./held-out.ts"
import { FAMILIES, random } from "./secrets.ts"

const WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

describe("kinds that no rule was written for", () => {
  const r = random(41)
  const shown = HELD_OUT.flatMap(({ kind, ownRule, make }) =>
    WHOLE_CONTEXTS.flatMap((context) =>
      [1, 2, 3, 4].map(() => {
        const { text, secrets } = make(r)
        const put = context.put(text, r)
        return { kind, ownRule, missed: readable(secrets, redactText(put), context) !== undefined }
      }),
    ),
  )
  const recall = (some: typeof shown) => 1 - some.filter((one) => one.missed).length / some.length
  const missed = () => JSON.stringify([...new Set(shown.filter((one) => one.missed).map((one) => one.kind))])

  test("90 % of forty held-out kinds are redacted", () => {
    expect(new Set(shown.map((one) => one.kind)).size).toBe(40)
    expect(recall(shown), missed()).toBeGreaterThanOrEqual(0.9)
  })

  test("90 % of those that still have no rule are redacted", () => {
    const without = shown.filter((one) => !one.ownRule)
    expect(new Set(without.map((one) => one.kind)).size).toBeGreaterThanOrEqual(34)
    expect(recall(without), missed()).toBeGreaterThanOrEqual(0.9)
  })

  test("ids, hashes, versions and names are not tokens", () => {
    const of = (n: number) => random(n).of(WORD, n)
    const hex = (n: number) => random(n).of("0123456789abcdef", n)
    const kept = [
      `toolu_01${of(22)}`,
      `srvtoolu_01${of(22)}`,
      `agent_msg_01${of(22)}`,
      `req_011C${of(20)}`,
      `call_${of(24)}`,
      `chatcmpl-${of(29)}`,
      `resp_${hex(50)}`,
      `ses_${hex(12)}${of(14)}`,
      `prj_${of(28)}`,
      `user_${of(27)}`,
      `PRRC_kwDO${of(12)}`,
      `sha512-${of(80)}`,
      `sha256_${hex(64)}`,
      `pack-${hex(40)}.pack`,
      `docker-${hex(64)}.scope`,
      `auth-service-${hex(10)}-${"x2x4z"}`,
      `api-${hex(9)}-abcde`,
      `index-${of(8)}.js`,
      `rollout-2026-11-14T23-01-21-${hex(8)}-${hex(4)}-7801-bb25-${hex(12)}.jsonl`,
      "com.google.common.util.concurrent.AbstractFuture2Test.testGetV1",
      "github.com/modelcontextprotocol/typescript-sdk/v2/packages/server/src",
      "test_refresh_token_for_user2_with_v3_api",
      "my-app/src/components/TokenList2/AccessKeyV2.tsx",
    ]
    for (const text of kept) {
      expect(redactText(text)).toBe(text)
      expect(redactText(`see ${text}, then go on`)).toBe(`see ${text}, then go on`)
    }
  })

  test("an id in an id field is kept, even if it looks like a token", () => {
    const id = `vnd_${random(9).of(WORD, 36)}`
    expect(redactText(id)).toBe("[REDACTED:token]")
    expect(redactRecord({ tool_use_id: id, callID: id, ids: [id], [id]: 1 }).record).toEqual({
      tool_use_id: id,
      callID: id,
      ids: [id],
      [id]: 1,
    })
    const known = `${"gh"}p_${random(8).of(WORD, 36)}`
    expect(redactRecord({ id: known }).record).toEqual({ id: "[REDACTED:github-token]" })
  })
})

test("a known token in base64 is found, whatever precedes it", () => {
  const r = random(17)
  const plain = CONTEXTS[0]!
  const missed: string[] = []
  let all = 0
  for (const { family, make } of FAMILIES) {
    const mark = /^[A-Za-z]{2,}[A-Za-z0-9]*[-_]/.exec(make(random(1)))?.[0] ?? ""
    if (mark.length < 4) continue
    for (const before of ["", "u:", "user:", "me@example.com:"]) {
      const secret = Buffer.from(before + make(r)).toString("base64")
      const tail = secret.slice(-28)
      all++
      const text = redactText(`data:\n  token: x\n  value: ${secret}\n`)
      if (readable([tail], text, plain) !== undefined) missed.push(`${family} after "${before}"`)
    }
  }
  expect(all).toBeGreaterThan(100)
  expect(missed.length / all, missed.join("\n")).toBeLessThanOrEqual(0.1)
})

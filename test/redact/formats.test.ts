import { expect, test } from "vitest"
import { redactText } from "../../src/redact/redact.ts"
import { leakOf, plant, random } from "./secrets.ts"

// A share over all formats cannot see that one of them is lost: here each must be found by itself.

test("no known format is missed: each is redacted nearly wherever it appears", () => {
  const known = Map.groupBy(
    plant(7, 12).filter((one) => one.known),
    (one) => one.family,
  )
  expect(known.size).toBeGreaterThan(80)
  const shares = [...known].map(([family, all]) => {
    const lost = all.filter((one) => leakOf(one, redactText(one.text, one.key)) !== undefined).length
    return { family, share: 1 - lost / all.length }
  })
  expect(shares.filter(({ share }) => share < 0.75)).toEqual([])
})

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
const HEX = "0123456789abcdef"
const LOW = "abcdefghijklmnopqrstuvwxyz0123456789"

/** In the issuers' formats; concatenated at run time, so that no scanner mistakes this file for a leak. */
const OTHERS: [issuer: string, make: (of: (alphabet: string, n: number) => string) => string][] = [
  ["AWS Bedrock", (of) => `${"ABSK"}QmVkcm9ja0FQSUtleS${of(LETTERS, 110)}`],
  ["Langfuse", (of) => `${"sk-"}lf-${of(HEX, 8)}-${of(HEX, 4)}-${of(HEX, 4)}-${of(HEX, 4)}-${of(HEX, 12)}`],
  ["Azure DevOps", (of) => `${of(LETTERS, 76)}${"AZ"}DO${of(LETTERS, 4)}`],
  ["Context7", (of) => `${"ctx7"}sk-${of(HEX, 8)}-${of(HEX, 4)}-${of(HEX, 4)}-${of(HEX, 4)}-${of(HEX, 12)}`],
  ["E2B", (of) => `${"e2"}b_${of(HEX, 40)}`],
  ["ElevenLabs", (of) => `${"sk"}_${of(HEX, 48)}`],
  ["PostHog", (of) => `${"ph"}x_${of(LETTERS, 43)}`],
  ["Sourcegraph", (of) => `${"sg"}p_${of(HEX, 16)}_${of(HEX, 40)}`],
  ["1Password", (of) => `${"ops"}_eyJ${of(LETTERS, 400)}`],
  ["JFrog reference", (of) => `${"cmVm"}dGtuO${of(LETTERS, 55)}`],
  ["JFrog key", (of) => `${"AK"}Cp${of(LETTERS, 69)}`],
  ["OpenShift", (of) => `${"sha"}256~${of(LETTERS, 43)}`],
  ["Alibaba", (of) => `${"LT"}AI5t${of(LETTERS, 18)}`],
  ["EasyPost", (of) => `${"EZ"}AK${of(LETTERS, 54)}`],
  ["Shippo", (of) => `${"shippo"}_live_${of(HEX, 40)}`],
  ["Razorpay", (of) => `${"rzp"}_live_${of(LETTERS, 14)}`],
  ["ReadMe", (of) => `${"rd"}me_${of(LOW, 70)}`],
  ["Prefect", (of) => `${"pn"}u_${of(LETTERS, 36)}`],
]

test.each(OTHERS)("a key of %s is redacted, bare, quoted and in a file", (_, make) => {
  for (let seed = 1; seed <= 8; seed++) {
    const secret = make(random(seed).of)
    for (const text of [secret, `use \`${secret}\` for it`, `{"value": "${secret}"}`, `export X=${secret}\n`]) {
      const left = redactText(text)
      expect([seed, text === left]).toEqual([seed, false])
      expect(left).not.toContain(secret.slice(-12))
    }
  }
})

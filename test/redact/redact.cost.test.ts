import { describe, expect, test } from "vitest"
import { redactText } from "../../src/redact/redact.ts"
import { TOKEN_RULES } from "../../src/redact/rules.ts"
import { random } from "./secrets.ts"

const WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/**
 * The promise is 1 MB/s on a processor that does nothing else. The speed of a machine changes from minute to minute, so the test
 * compares with a pattern that is tried just before, four times on ordinary text: it ran at 8 to 17 MB/s on a busy machine.
 */
const MOST_TIMES = 16
const PLAIN = /\b(?:[a-z]{3,9}[_-]?(?:key|word|token)|[A-Za-z0-9+/]{40,}={0,2}|\d{4}-\d{2}-\d{2})\b/gi
const PROSE = fill(
  "The brown fox sets password_key on 2026-11-18 and jumps over https://example.org/a/b lazily. ",
  1 << 16,
)

/** How long the plain pattern takes on ordinary text of this length. */
function plainSeconds(length: number): number {
  const seconds = cpuSeconds(() => {
    for (let i = 0; i < 4; i++) for (const _ of PROSE.matchAll(PLAIN));
  })
  return (seconds * length) / PROSE.length
}

describe("texts made to be slow", () => {
  const floods: [name: string, piece: string][] = [
    ...["<private>", "<private></private>", '<private a="', "<private      ", "</private>"].map(
      (p): [string, string] => [p, p],
    ),
    ["PEM headers", `-----BEGIN RSA ${"PRIVATE"} KEY-----\n`],
    ["PEM ends", `-----END RSA ${"PRIVATE"} KEY-----\n`],
    ["PEM pairs", `-----BEGIN ${"PRIVATE"} KEY-----\n-----END ${"PRIVATE"} KEY-----\n`],
    ["PEM lines", `${"QUJD".repeat(16)}\n-----END ${"PRIVATE"} KEY-----\n`],
    ["one token-like run", "aB3dE5gH7jK9mN1pQ"],
    ["one letter", "a"],
    ["hexadecimal", "0123456789abcdef"],
    ...[
      "password=",
      '"password":"',
      "password='",
      "passwordpass",
      "api_key",
      'api_key="',
      "key",
      "secret_",
      "token\\\\\\\\",
    ].map((p): [string, string] => [p, p]),
    ...["https://a:a:a:a:", "https://a:a", "://a@", "://", "a@a:", "%3A%2F%2F", "%3A%2F%2Fa%3A"].map(
      (p): [string, string] => [p, p],
    ),
    ...["eyJ", "eyJaaaaaaaaaaaaa.", ".eyJ", `${"gh"}p_`, "sk-", "xoxb-", "sntrys_", "AKIA", "pat", "a."].map(
      (p): [string, string] => [p, p],
    ),
    ["folded tokens", `${"gh"}p_a8Kd93kLs0QpZx7V\n`],
    ...["Bearer ", "Basic dXNlcjp", "Cookie: a=", "cookie=", "authorization: ", "curl -u ", "mysql -p", "&sig="].map(
      (p): [string, string] => [p, p],
    ),
    ...[
      "[REDACTED:",
      "[REDACTED:password]password=",
      "password=aB3dE5gH7jK9 ",
      "token is ",
      "--a-token ",
      "--",
      "\\",
      "\0",
    ].map((p): [string, string] => [p, p]),
    ...["\u001b", "\u001b[", "\u001b[0m", "\u001b]8;;", "\u001bP", "[0m", "\\u001b[", "a\b", "\u200b", "\u3000"].map(
      (p): [string, string] => [JSON.stringify(p), p],
    ),
    ["tokens of unknown issuers", `${"x_aB3dE5gH7jK9"}mN1pQrStUvWxYz0123/`],
    ["pieces of base64", "aB3-aB3dE5gH7jK9mN1pQrS+"],
    ["cut tokens", "aB3dE5gH7jK9mN1pQrS..."],
    ["wrapped lines", "aB3dE5gH7jK9mN1pQrStUvWxYzaB3dE5gH7jK9mN1pQr\n"],
    ["glued tokens", `${"gh"}p_aB3dE5gH7jK9mN1pQrS"+\n"`],
    ["tokens in base64", "Z2hwX"],
    ["lines of a key", `${"QUJD".repeat(16)}\n`],
    ["beginnings of keys", "MIIEpAIBAAKCAQEA"],
    ...[
      "admin / aB3!dE5gH ",
      "seed phrase: abandon ability ",
      "пароль ",
      "密码",
      "mot de passe : ",
      'api_key="aB3dE5g...',
    ].map((p): [string, string] => [p, p]),
    ...[
      "- name: DB_PASSWORD\n",
      '{"name":"TOKEN","a":"b","c":"d","e":"f",',
      "kind: Secret\n",
      "kind: Secret\nstringData:\n  a: b\n",
      "kind: Secret data: ",
      "| password | token ",
      "| password |\n|---|\n",
      "user,password\n",
      "password,token,secret,",
      "password            ",
      "<password>",
      "<key>password</key>",
      '.password("',
      '"token", "',
      'variable "db_password" {',
      'name="password" ',
      "ENV TOKEN ",
      "htpasswd -b a b ",
      "ssh-keygen ",
      "mongosh -p ",
      "mongosh -p aB3dE5gH7jK9 ",
      "echo a | sudo -S ",
      "echo a | chpasswd ",
      " -p",
      '{"kty":"oct",',
      '"kty"',
      ":5432:a:b:",
      "h:5432:a:b:c ",
      "\\u0061",
      "p\\u0061ssword=",
      "pаsswоrd=",
      "ｐａｓｓｗｏｒｄ＝",
      "https://a:b/",
      "postgres://app:aB3dE5/gH7jK9@db ",
      "Authorization: Digest ",
      "auth=('a', '",
      "-----BEGIN OpenVPN Static key V1-----\n",
      "2d2d2d2d2d424547494e20",
      "UEFTU1dPUkQ9",
    ].map((p): [string, string] => [JSON.stringify(p), p]),
    ["coloured passwords", "\u001b[1mpassword\u001b[0m="],
    ["emoji", "\ud83d\ude00"],
    ["lone surrogates", "\ud800"],
  ]

  test(`each takes at most ${MOST_TIMES} times as long as a plain pattern, and redacting twice changes nothing`, () => {
    const slowest = { times: 0, speed: 0, name: "" }
    for (const [name, piece] of floods) {
      for (const text of [fill(piece, 1 << 18), `https://a:password='${fill(piece, 1 << 16)}`]) {
        let once = text
        let speed = 0
        const redact = () => (once = redactText(text))
        const times = -bestOf(
          6,
          () => {
            const seconds = cpuSeconds(redact)
            speed = Math.max(speed, text.length / 1e6 / seconds)
            return -seconds / plainSeconds(text.length)
          },
          -MOST_TIMES,
        )
        expect(times, `${name}: times the plain pattern`).toBeLessThanOrEqual(MOST_TIMES)
        if (times > slowest.times) Object.assign(slowest, { times, speed, name })
        expect(redactText(once) === once, `${name}: redacted twice`).toBe(true)
      }
    }
    const { times, speed, name } = slowest
    console.log(`slowest: ${name}, ${times.toFixed(1)} times the plain pattern, ${speed.toFixed(2)} MB/s`)
  })

  test("the time of every rule grows no faster than the text", () => {
    for (const attack of [...TOKEN_RULES.flatMap(attacksOn), ...floods.map(([, piece]) => piece)]) {
      const at16 = fastest(attack, 1 << 14)
      if (at16 < TOO_SHORT_MS) continue // too short to compare, and far below the bound
      const growth = -bestOf(5, () => -fastest(attack, 1 << 14) / fastest(attack, 1 << 13), -2.2)
      expect(growth, `growth per doubling on ${JSON.stringify(attack.slice(0, 60))}`).toBeLessThanOrEqual(2.2)
      expect(at16).toBeLessThanOrEqual(50)
    }
  })
})

function fill(piece: string, length: number): string {
  return piece.repeat(Math.ceil(length / piece.length)).slice(0, length)
}

/** Texts that begin like a token of this rule again and again and never become one, or only just. */
function attacksOn({ keys }: { keys: string }): string[] {
  const key = keys.split(" ")[0]!
  const r = random(key.length)
  return [
    key,
    `${key}a`,
    `${key}${r.of(WORD, 19)}`,
    ` ${key}${r.of("0123456789abcdef", 31)}`,
    `.${key}-_.`,
    `${key}${r.of(WORD, 25)}\n`,
  ]
}

/** Shorter times cannot be compared. */
const TOO_SHORT_MS = 16

/** Milliseconds of processor time of the fastest of several runs. Complete pieces only: a cut last one may be a token and cost a second pass. */
function fastest(piece: string, length: number): number {
  const text = piece.repeat(Math.ceil(length / piece.length))
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < 5 && best > TOO_SHORT_MS; i++) {
    best = Math.min(best, 1000 * cpuSeconds(() => redactText(text)))
  }
  return best
}

function cpuSeconds(run: () => unknown): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return Math.max((user + system) / 1e6, 1e-6)
}

/** The highest of several measurements, since the machine may be busy; stops as soon as one is good enough. */
function bestOf(times: number, measure: () => number, enough: number): number {
  let best = Number.NEGATIVE_INFINITY
  for (let i = 0; i < times && best < enough; i++) best = Math.max(best, measure())
  return best
}

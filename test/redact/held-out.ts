import { Buffer } from "node:buffer"
import type { Random } from "./secrets.ts"

// Forty kinds of secrets that the rules were not written for. They were drawn at random from the lists of gitleaks, trufflehog
// and detect-secrets, among the kinds without a rule, before the rules were changed. 26 have their own prefix, and 14 are only
// recognisable by their variable's name. `ownRule` marks a kind that has a rule now, which the measurement counts separately.

export type HeldOut = {
  kind: string
  ownRule?: true
  make: (r: Random) => { text: string; secrets: string[] }
}

const LOWER = "abcdefghijklmnopqrstuvwxyz"
const DIGITS = "0123456789"
const HEX = `${DIGITS}abcdef`
const ALNUM = LOWER + DIGITS
const WORD = LOWER + LOWER.toUpperCase() + DIGITS
const URLSAFE = `${WORD}_-`
const BASE64 = `${WORD}+/`

const uuid = (r: Random) => [8, 4, 4, 4, 12].map((n) => r.of(HEX, n)).join("-")

/** A token with a mark, shown alone: `mark` is public, `body` is not. */
function marked(
  kind: string,
  make: (r: Random) => [mark: string, body: string, end?: string],
  rule?: "own rule",
): HeldOut {
  return {
    kind,
    ...(rule && { ownRule: true }),
    make: (r) => {
      const [mark, body, end = ""] = make(r)
      return { text: `${mark}${body}${end}`, secrets: body.split(/(?<=\.)/).filter((piece) => piece.length >= 8) }
    },
  }
}

/** A value without any mark, with the variable's name from its issuer's documentation. */
function named(kind: string, name: string, alphabet: string, length: number): HeldOut {
  return {
    kind,
    make: (r) => {
      const value = r.of(alphabet, length)
      return { text: `${name}=${value}`, secrets: [value] }
    },
  }
}

export const HELD_OUT: HeldOut[] = [
  marked("adobe client secret", (r) => [`p8${"e-"}`, r.of(WORD, 32)]),
  marked("apify", (r) => [`api${"fy_api_"}`, r.of(WORD, 36)]),
  marked("authress service client", (r) => [
    `s${"c_"}${r.of(ALNUM, 20)}.${r.of(ALNUM, 4)}.${"acc"}-${r.of(ALNUM, 16)}.`,
    r.of(BASE64, 64),
  ]),
  marked("bannerbear project", (r) => [`bb${"_pr_"}`, r.of(HEX, 30)], "own rule"),
  marked("bedrock short-lived", (r) => [
    `${"bedrock"}-api-key-`,
    Buffer.from(`${"bedrock.amazonaws"}.com/?Action=CallWithBearerToken&X-Amz-Credential=${r.of(WORD, 60)}`).toString(
      "base64",
    ),
  ]),
  marked("bitbucket data center", (r) => [`BB${"DC-"}`, r.of(`${WORD}+/_-`, 44)]),
  marked("close crm", (r) => [`ap${"i_"}`, `${r.of(WORD, 22)}.${r.of(WORD, 22)}`]),
  marked("deno deploy", (r) => [`dd${r.pick(["p_", "w_"])}`, r.of(WORD, 36)]),
  marked("duffel", (r) => [`duf${"fel_"}${r.pick(["test", "live"])}_`, r.of(URLSAFE, 43)]),
  marked("facebook app token", (r) => [`${r.of("123456789", 15)}|`, r.of(URLSAFE, 27)], "own rule"),
  marked("fleetbase", (r) => [`fl${"b_live_"}`, r.of(WORD, 20)]),
  marked("freemius", (r) => [`'secret_key' => 's${"k_"}`, r.of(WORD, 29), "',"]),
  marked("fullstory", (r) => [`na${"1."}`, r.of(BASE64, 100)]),
  marked("gitlab runner registration", (r) => [`GR${"1348941"}`, r.of(URLSAFE, 20)], "own rule"),
  marked("lob", (r) => [`${r.pick(["live", "test"])}_`, r.of(HEX, 35)], "own rule"),
  marked("mapbox secret", (r) => [`s${"k.ey"}J`, `${r.of(WORD, 60)}.${r.of(URLSAFE, 22)}`]),
  marked("nvidia", (r) => [`nv${"api-"}`, r.of(URLSAFE, 64)]),
  marked("pganalyze", (r) => [`pg${"ar_"}`, r.of(WORD, 27)]),
  marked("robinhood crypto", (r) => [`rh${"-api-"}`, uuid(r)]),
  marked("rootly", (r) => [`root${"ly_"}`, r.of(HEX, 64)]),
  marked("settlemint", (r) => [`sm${"_"}${r.pick(["pat", "aat", "sat"])}_`, r.of(WORD, 16)], "own rule"),
  marked("sonarcloud scoped", (r) => [`sq${"co_"}`, r.of(WORD, 59)]),
  marked("spectralops", (r) => [`sp${"u-"}`, r.of(ALNUM, 32)], "own rule"),
  marked("stripe payment intent", (r) => [`p${"i_"}${r.of(WORD, 24)}_secret_`, r.of(WORD, 25)]),
  marked("voiceflow", (r) => [`V${"F.DM."}${r.of(HEX, 24)}.`, r.of(WORD, 16)]),
  marked("yandex iam", (r) => [`t${"1."}${r.of(WORD, 7)}.`, r.of(URLSAFE, 86)]),
  named("alibaba secret", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", WORD, 30),
  named("assemblyai", "ASSEMBLYAI_API_KEY", ALNUM, 32),
  named("bitbucket client secret", "BITBUCKET_CLIENT_SECRET", `${ALNUM}=_-`, 64),
  named("bittrex", "BITTREX_SECRET_KEY", ALNUM, 32),
  named("cisco meraki", "MERAKI_DASHBOARD_API_KEY", HEX, 40),
  named("fastly", "FASTLY_API_TOKEN", `${WORD}_-`, 32),
  named("freshbooks", "FRESHBOOKS_ACCESS_TOKEN", ALNUM, 64),
  named("intercom", "INTERCOM_ACCESS_TOKEN", `${ALNUM}=_-`, 60),
  named("mattermost", "MATTERMOST_ACCESS_TOKEN", ALNUM, 26),
  named("messagebird", "MESSAGEBIRD_API_KEY", WORD, 25),
  named("nytimes", "NYTIMES_API_KEY", `${WORD}_-`, 32),
  named("plaid secret", "PLAID_SECRET", HEX, 30),
  {
    kind: "sidekiq",
    make: (r) => {
      const value = `${r.of(HEX, 8)}:${r.of(HEX, 8)}`
      return { text: `BUNDLE_ENTERPRISE__CONTRIBSYS__COM=${value}`, secrets: [value] }
    },
  },
  named("sumo logic", "SUMOLOGIC_ACCESS_KEY", WORD, 64),
]

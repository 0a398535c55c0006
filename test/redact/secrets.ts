// Planted secrets: random values from a seed, in each issuer's format, in the places where transcripts contain them. Tokens are
// assembled at run time, so that no file of the repository contains anything that a secret scanner would report.

export type Planted = {
  family: string
  /** A known format names its issuer; a generic one is only recognised by its place. */
  known: boolean
  place: string
  text: string
  /** The JSON field of the text, if the place is a field. */
  key?: string
  /** None of these may be readable afterwards, not even a dozen characters of one. */
  secrets: string[]
  /** Must still be there. */
  kept: string[]
}

export type Random = {
  int(max: number): number
  pick<T>(list: readonly T[]): T
  of(alphabet: string, n: number): string
}

/** mulberry32: small, fast, and the same everywhere. */
export function random(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (max: number) => Math.floor(next() * max)
  return {
    int,
    pick: (list) => list[int(list.length)]!,
    of: (alphabet, n) => Array.from({ length: n }, () => alphabet[int(alphabet.length)]!).join(""),
  }
}

const LOWER = "abcdefghijklmnopqrstuvwxyz"
const UPPER = LOWER.toUpperCase()
const DIGITS = "0123456789"
const HEX = `${DIGITS}abcdef`
const WORD = LOWER + UPPER + DIGITS
const URLSAFE = `${WORD}_-`
const BASE64 = `${WORD}+/`
const BASE32 = `${UPPER}234567`

const uuid = (r: Random) => [8, 4, 4, 4, 12].map((n) => r.of(HEX, n)).join("-")
const json64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")
const jwt = (r: Random) =>
  [
    json64url({ alg: "HS256", typ: "JWT" }),
    json64url({ sub: r.of(DIGITS, 10), iat: 1_700_000_000 + r.int(1e7) }),
    r.of(URLSAFE, 43),
  ].join(".")

/** The usual name of the variable, and the token. */
export const FAMILIES: { family: string; name: string; make: (r: Random) => string }[] = [
  { family: "aws access key", name: "AWS_ACCESS_KEY_ID", make: (r) => `${"AK"}IA${r.of(BASE32, 16)}` },
  { family: "aws session key", name: "AWS_ACCESS_KEY_ID", make: (r) => `${"AS"}IA${r.of(BASE32, 16)}` },
  { family: "github classic", name: "GITHUB_TOKEN", make: (r) => `${"gh"}p_${r.of(WORD, 36)}` },
  { family: "github oauth", name: "GH_TOKEN", make: (r) => `${"gh"}o_${r.of(WORD, 36)}` },
  { family: "github app", name: "GITHUB_TOKEN", make: (r) => `${"gh"}${r.pick(["u", "s"])}_${r.of(WORD, 36)}` },
  { family: "github refresh", name: "REFRESH_TOKEN", make: (r) => `${"gh"}r_${r.of(WORD, 76)}` },
  {
    family: "github fine-grained",
    name: "GH_TOKEN",
    make: (r) => `${"github"}_pat_${r.of(WORD, 22)}_${r.of(WORD, 59)}`,
  },
  { family: "gitlab pat", name: "GITLAB_TOKEN", make: (r) => `${"gl"}pat-${r.of(URLSAFE, 20)}` },
  { family: "gitlab runner", name: "RUNNER_TOKEN", make: (r) => `${"gl"}rt-${r.of(URLSAFE, 20)}` },
  {
    family: "gitlab routable",
    name: "GITLAB_TOKEN",
    make: (r) => `${"gl"}pat-${r.of(WORD, 27)}.01.${r.of(LOWER + DIGITS, 9)}`,
  },
  {
    family: "slack bot",
    name: "SLACK_BOT_TOKEN",
    make: (r) => `${"xo"}xb-${r.of(DIGITS, 12)}-${r.of(DIGITS, 13)}-${r.of(WORD, 24)}`,
  },
  {
    family: "slack user",
    name: "SLACK_TOKEN",
    make: (r) => `${"xo"}xp-${r.of(DIGITS, 11)}-${r.of(DIGITS, 11)}-${r.of(DIGITS, 12)}-${r.of(HEX, 32)}`,
  },
  {
    family: "slack app",
    name: "SLACK_APP_TOKEN",
    make: (r) => `${"xa"}pp-1-A${r.of(UPPER + DIGITS, 10)}-${r.of(DIGITS, 13)}-${r.of(HEX, 64)}`,
  },
  { family: "stripe secret", name: "STRIPE_SECRET_KEY", make: (r) => `${"sk"}_live_${r.of(WORD, 24)}` },
  { family: "stripe long", name: "STRIPE_KEY", make: (r) => `${"sk"}_test_51${r.of(WORD, 97)}` },
  { family: "stripe restricted", name: "STRIPE_KEY", make: (r) => `${"rk"}_live_${r.of(WORD, 24)}` },
  { family: "webhook signing", name: "WEBHOOK_SECRET", make: (r) => `${"wh"}sec_${r.of(WORD, 32)}` },
  {
    family: "openai legacy",
    name: "OPENAI_API_KEY",
    make: (r) => `${"sk"}-${r.of(WORD, 20)}${"T3Blbk"}FJ${r.of(WORD, 20)}`,
  },
  {
    family: "openai project",
    name: "OPENAI_API_KEY",
    make: (r) => `${"sk"}-proj-${r.of(URLSAFE, 74)}${"T3Blbk"}FJ${r.of(URLSAFE, 74)}`,
  },
  {
    family: "openai service",
    name: "OPENAI_API_KEY",
    make: (r) => `${"sk"}-svcacct-${r.of(URLSAFE, 74)}${"T3Blbk"}FJ${r.of(URLSAFE, 74)}`,
  },
  { family: "anthropic api", name: "ANTHROPIC_API_KEY", make: (r) => `${"sk"}-ant-api03-${r.of(URLSAFE, 93)}AA` },
  {
    family: "anthropic oauth",
    name: "CLAUDE_CODE_OAUTH_TOKEN",
    make: (r) => `${"sk"}-ant-oat01-${r.of(URLSAFE, 93)}AA`,
  },
  { family: "anthropic refresh", name: "REFRESH_TOKEN", make: (r) => `${"sk"}-ant-ort01-${r.of(URLSAFE, 93)}AA` },
  { family: "openrouter", name: "OPENROUTER_API_KEY", make: (r) => `${"sk"}-or-v1-${r.of(HEX, 64)}` },
  { family: "deepseek", name: "DEEPSEEK_API_KEY", make: (r) => `${"sk"}-${r.of(HEX, 32)}` },
  { family: "google api", name: "GOOGLE_API_KEY", make: (r) => `${"AI"}za${r.of(URLSAFE, 35)}` },
  { family: "google oauth token", name: "ACCESS_TOKEN", make: (r) => `${"ya"}29.a0${r.of(URLSAFE, 150)}` },
  { family: "google oauth secret", name: "GOOGLE_CLIENT_SECRET", make: (r) => `${"GOC"}SPX-${r.of(URLSAFE, 28)}` },
  { family: "google refresh", name: "REFRESH_TOKEN", make: (r) => `1/${"/0"}${r.of(URLSAFE, 60)}` },
  {
    family: "azure client secret",
    name: "AZURE_CLIENT_SECRET",
    make: (r) => `${r.of(WORD, 3)}8${"Q~"}${r.of(`${WORD}_-.`, 34)}`,
  },
  { family: "npm", name: "NPM_TOKEN", make: (r) => `${"np"}m_${r.of(WORD, 36)}` },
  { family: "pypi", name: "TWINE_PASSWORD", make: (r) => `${"py"}pi-AgEIcHlwaS5vcmc${r.of(URLSAFE, 150)}` },
  { family: "docker hub", name: "DOCKER_TOKEN", make: (r) => `${"dckr"}_pat_${r.of(URLSAFE, 27)}` },
  { family: "hugging face", name: "HF_TOKEN", make: (r) => `${"h"}f_${r.of(LOWER + UPPER, 34)}` },
  { family: "replicate", name: "REPLICATE_API_TOKEN", make: (r) => `${"r"}8_${r.of(WORD, 37)}` },
  { family: "sendgrid", name: "SENDGRID_API_KEY", make: (r) => `${"S"}G.${r.of(URLSAFE, 22)}.${r.of(URLSAFE, 43)}` },
  { family: "mailgun", name: "MAILGUN_API_KEY", make: (r) => `${"ke"}y-${r.of(HEX, 32)}` },
  { family: "mailgun new", name: "MAILGUN_API_KEY", make: (r) => `${r.of(HEX, 32)}-${r.of(HEX, 8)}-${r.of(HEX, 8)}` },
  { family: "mailchimp", name: "MAILCHIMP_API_KEY", make: (r) => `${r.of(HEX, 32)}-${"us"}${1 + r.int(20)}` },
  { family: "brevo", name: "BREVO_API_KEY", make: (r) => `${"xkey"}sib-${r.of(HEX, 64)}-${r.of(WORD, 16)}` },
  { family: "resend", name: "RESEND_API_KEY", make: (r) => `${"r"}e_${r.of(WORD, 8)}_${r.of(WORD, 24)}` },
  { family: "twilio key", name: "TWILIO_API_KEY", make: (r) => `${"S"}K${r.of(HEX, 32)}` },
  {
    family: "telegram bot",
    name: "TELEGRAM_BOT_TOKEN",
    make: (r) => `${1 + r.int(9)}${r.of(DIGITS, 9)}:${"A"}A${r.of(URLSAFE, 33)}`,
  },
  {
    family: "discord bot",
    name: "DISCORD_TOKEN",
    make: (r) => `${"M"}T${r.of(WORD, 24)}.${r.of(URLSAFE, 6)}.${r.of(URLSAFE, 38)}`,
  },
  { family: "shopify", name: "SHOPIFY_TOKEN", make: (r) => `${"shp"}at_${r.of(HEX, 32)}` },
  { family: "square", name: "SQUARE_TOKEN", make: (r) => `${"sq"}0atp-${r.of(URLSAFE, 22)}` },
  { family: "square new", name: "SQUARE_ACCESS_TOKEN", make: (r) => `${"EA"}AAl${r.of(URLSAFE, 59)}` },
  { family: "facebook", name: "FB_ACCESS_TOKEN", make: (r) => `${"E"}AA${r.of(WORD, 180)}` },
  { family: "databricks", name: "DATABRICKS_TOKEN", make: (r) => `${"da"}pi${r.of(HEX, 32)}` },
  { family: "digitalocean", name: "DO_TOKEN", make: (r) => `${"do"}p_v1_${r.of(HEX, 64)}` },
  { family: "heroku", name: "HEROKU_API_KEY", make: (r) => `${"HR"}KU-${uuid(r)}` },
  { family: "cloudflare", name: "CLOUDFLARE_API_TOKEN", make: (r) => `${"cf"}ut_${r.of(WORD, 48)}` },
  { family: "linear", name: "LINEAR_API_KEY", make: (r) => `${"lin"}_api_${r.of(WORD, 40)}` },
  { family: "notion", name: "NOTION_TOKEN", make: (r) => `${"nt"}n_${r.of(WORD, 46)}` },
  { family: "notion old", name: "NOTION_KEY", make: (r) => `${"sec"}ret_${r.of(WORD, 43)}` },
  { family: "figma", name: "FIGMA_TOKEN", make: (r) => `${"fig"}d_${r.of(URLSAFE, 40)}` },
  {
    family: "atlassian",
    name: "JIRA_API_TOKEN",
    make: (r) => `${"ATA"}TT3xFfGF0${r.of(URLSAFE, 170)}=${r.of(HEX, 8).toUpperCase()}`,
  },
  { family: "bitbucket", name: "BITBUCKET_TOKEN", make: (r) => `${"AT"}BB${r.of(WORD, 32)}` },
  {
    family: "sentry org",
    name: "SENTRY_AUTH_TOKEN",
    make: (r) => `${"sn"}trys_${json64url({ iat: 17e8 + r.int(1e7), url: "https://sentry.io" })}_${r.of(WORD, 43)}`,
  },
  { family: "sentry user", name: "SENTRY_AUTH_TOKEN", make: (r) => `${"sn"}tryu_${r.of(HEX, 64)}` },
  { family: "new relic", name: "NEW_RELIC_API_KEY", make: (r) => `${"NR"}AK-${r.of(UPPER + DIGITS, 27)}` },
  { family: "grafana service", name: "GRAFANA_TOKEN", make: (r) => `${"gl"}sa_${r.of(WORD, 32)}_${r.of(HEX, 8)}` },
  {
    family: "grafana cloud",
    name: "GRAFANA_TOKEN",
    make: (r) => `${"gl"}c_${json64url({ o: r.of(DIGITS, 6), n: "stack", k: r.of(WORD, 24) })}`,
  },
  { family: "supabase", name: "SUPABASE_ACCESS_TOKEN", make: (r) => `${"sb"}p_${r.of(HEX, 40)}` },
  { family: "supabase secret", name: "SUPABASE_SECRET", make: (r) => `${"sb"}_secret_${r.of(URLSAFE, 31)}` },
  { family: "vault", name: "VAULT_TOKEN", make: (r) => `${"hv"}s.CAES${r.of(URLSAFE, 90)}` },
  { family: "terraform cloud", name: "TF_TOKEN", make: (r) => `${r.of(WORD, 14)}.${"atlas"}v1.${r.of(URLSAFE, 67)}` },
  { family: "doppler", name: "DOPPLER_TOKEN", make: (r) => `${"dp"}.pt.${r.of(WORD, 43)}` },
  { family: "planetscale", name: "PLANETSCALE_TOKEN", make: (r) => `${"psc"}ale_tkn_${r.of(URLSAFE, 43)}` },
  { family: "planetscale password", name: "DATABASE_PASSWORD", make: (r) => `${"psc"}ale_pw_${r.of(URLSAFE, 43)}` },
  { family: "postman", name: "POSTMAN_API_KEY", make: (r) => `${"PM"}AK-${r.of(HEX, 24)}-${r.of(HEX, 34)}` },
  { family: "airtable", name: "AIRTABLE_TOKEN", make: (r) => `${"p"}at${r.of(WORD, 14)}.${r.of(HEX, 64)}` },
  { family: "asana", name: "ASANA_TOKEN", make: (r) => `1/${r.of("123456789", 16)}:${r.of(HEX, 32)}` },
  { family: "dropbox", name: "DROPBOX_TOKEN", make: (r) => `${"s"}l.u.${r.of(URLSAFE, 180)}` },
  { family: "rubygems", name: "GEM_HOST_API_KEY", make: (r) => `${"ruby"}gems_${r.of(HEX, 48)}` },
  { family: "crates.io", name: "CARGO_REGISTRY_TOKEN", make: (r) => `${"c"}io${r.of(WORD, 32)}` },
  { family: "nuget", name: "NUGET_API_KEY", make: (r) => `${"o"}y2${r.of(LOWER + DIGITS, 43)}` },
  { family: "age", name: "SOPS_AGE_KEY", make: (r) => `${"AGE-SECRET"}-KEY-1${r.of(UPPER + DIGITS, 58)}` },
  { family: "jwt", name: "JWT", make: jwt },
  { family: "perplexity", name: "PERPLEXITY_API_KEY", make: (r) => `${"pp"}lx-${r.of(WORD, 48)}` },
  { family: "groq", name: "GROQ_API_KEY", make: (r) => `${"g"}sk_${r.of(WORD, 52)}` },
  { family: "xai", name: "XAI_API_KEY", make: (r) => `${"x"}ai-${r.of(WORD, 80)}` },
  { family: "fireworks", name: "FIREWORKS_API_KEY", make: (r) => `${"f"}w_${r.of(WORD, 24)}` },
  { family: "pinecone", name: "PINECONE_API_KEY", make: (r) => `${"pc"}sk_${r.of(WORD, 5)}_${r.of(WORD, 62)}` },
  { family: "langsmith", name: "LANGSMITH_API_KEY", make: (r) => `${"ls"}v2_pt_${r.of(HEX, 32)}_${r.of(HEX, 10)}` },
  { family: "tavily", name: "TAVILY_API_KEY", make: (r) => `${"tv"}ly-dev-${r.of(WORD, 32)}` },
  { family: "firecrawl", name: "FIRECRAWL_API_KEY", make: (r) => `${"f"}c-${r.of(HEX, 32)}` },
  { family: "netlify", name: "NETLIFY_AUTH_TOKEN", make: (r) => `${"nf"}p_${r.of(WORD, 36)}` },
  { family: "fly", name: "FLY_API_TOKEN", make: (r) => `${"fo"}1_${r.of(URLSAFE, 43)}` },
  { family: "fly macaroon", name: "FLY_API_TOKEN", make: (r) => `${"fm"}2_lJPECAAA${r.of(BASE64, 200)}` },
  { family: "render", name: "RENDER_API_KEY", make: (r) => `${"r"}nd_${r.of(WORD, 32)}` },
  { family: "tailscale", name: "TS_AUTHKEY", make: (r) => `${"ts"}key-auth-${r.of(WORD, 17)}-${r.of(WORD, 32)}` },
  { family: "pulumi", name: "PULUMI_ACCESS_TOKEN", make: (r) => `${"p"}ul-${r.of(HEX, 40)}` },
  { family: "buildkite", name: "BUILDKITE_TOKEN", make: (r) => `${"bk"}ua_${r.of(HEX, 40)}` },
  { family: "circleci", name: "CIRCLE_TOKEN", make: (r) => `${"CCI"}PAT_${r.of(WORD, 22)}_${r.of(HEX, 40)}` },
  { family: "sonar", name: "SONAR_TOKEN", make: (r) => `${"sq"}u_${r.of(HEX, 40)}` },
  { family: "hubspot", name: "HUBSPOT_TOKEN", make: (r) => `${"pat"}-na1-${uuid(r)}` },
  {
    family: "dynatrace",
    name: "DT_TOKEN",
    make: (r) => `${"dt"}0c01.${r.of(UPPER + DIGITS, 24)}.${r.of(UPPER + DIGITS, 64)}`,
  },
  { family: "contentful", name: "CONTENTFUL_TOKEN", make: (r) => `${"CF"}PAT-${r.of(URLSAFE, 43)}` },
  {
    family: "vercel blob",
    name: "BLOB_READ_WRITE_TOKEN",
    make: (r) => `${"vercel"}_blob_rw_${r.of(WORD, 16)}_${r.of(WORD, 30)}`,
  },
]

/** Values without a recognisable format: only their place reveals them. */
export const GENERIC: { family: string; name: string; make: (r: Random) => string }[] = [
  { family: "aws secret key", name: "AWS_SECRET_ACCESS_KEY", make: (r) => r.of(BASE64, 40) },
  { family: "azure storage key", name: "AZURE_STORAGE_KEY", make: (r) => `${r.of(BASE64, 86)}==` },
  { family: "mistral key", name: "MISTRAL_API_KEY", make: (r) => r.of(WORD, 32) },
  { family: "cohere key", name: "COHERE_API_KEY", make: (r) => r.of(WORD, 40) },
  { family: "railway token", name: "RAILWAY_TOKEN", make: uuid },
  { family: "datadog key", name: "DD_API_KEY", make: (r) => r.of(HEX, 32) },
  { family: "datadog app key", name: "DD_APP_KEY", make: (r) => r.of(HEX, 40) },
  { family: "twilio auth token", name: "TWILIO_AUTH_TOKEN", make: (r) => r.of(HEX, 32) },
  { family: "vercel token", name: "VERCEL_TOKEN", make: (r) => r.of(WORD, 24) },
  { family: "cloudflare old", name: "CF_API_TOKEN", make: (r) => r.of(URLSAFE, 40) },
  { family: "heroku old", name: "HEROKU_API_KEY", make: uuid },
  { family: "client secret", name: "OAUTH_CLIENT_SECRET", make: (r) => r.of(WORD, 32) },
  { family: "signing secret", name: "SECRET_KEY_BASE", make: (r) => r.of(HEX, 128) },
  { family: "django secret", name: "DJANGO_SECRET_KEY", make: (r) => r.of(`${LOWER}${DIGITS}!@#$%^&*-_=+`, 50) },
  { family: "short token", name: "ACCESS_TOKEN", make: (r) => r.of(WORD, 16 + r.int(5)) },
  { family: "base64 secret", name: "SESSION_SECRET", make: (r) => `${r.of(BASE64, 43)}=` },
  { family: "generated password", name: "DB_PASSWORD", make: (r) => r.of(WORD, 12 + r.int(12)) },
  {
    family: "symbol password",
    name: "SMTP_PASSWORD",
    make: (r) => `${r.of(WORD, 5)}${r.of("!@#%^*", 1)}${r.of(WORD, 5)}${r.of("!@#%^*", 1)}${r.of(DIGITS, 2)}`,
  },
  {
    family: "person's password",
    name: "ADMIN_PASSWORD",
    make: (r) =>
      `${r.pick(["Summer", "Winter", "Dragon", "Monkey", "Arsenal", "Liverpool"])}${r.of(DIGITS, 4)}${r.pick(["!", "#", "$$", "?"])}`,
  },
]

/** Ways to write a value. Some places include the name; the others only show the value. */
const PLACES: {
  place: string
  named?: true
  put: (value: string, name: string, r: Random) => string | { text: string; key: string }
}[] = [
  { place: "prose", put: (v) => `please use ${v} for the staging system` },
  { place: "code span", put: (v) => `the old one was \`${v}\`, revoke it` },
  {
    place: "env dump",
    named: true,
    put: (v, name) => `PATH=/usr/local/bin:/usr/bin\n${name}=${v}\nHOME=/home/sam\nLANG=C.UTF-8`,
  },
  { place: "export", named: true, put: (v, name) => `export ${name}="${v}" && npm run deploy` },
  { place: "inline env", named: true, put: (v, name) => `cd api && ${name}=${v} node server.js` },
  { place: "escaped env dump", named: true, put: (v, name) => `{"stdout":"PWD=/app\\n${name}=${v}\\nTERM=xterm"}` },
  {
    place: "json",
    named: true,
    put: (v, name) => JSON.stringify({ id: 7, [name.toLowerCase()]: v, ok: true }, null, 2),
  },
  { place: "json camel", named: true, put: (v, name) => JSON.stringify({ [camel(name)]: v }) },
  {
    place: "json in json",
    named: true,
    put: (v, name) => JSON.stringify({ body: JSON.stringify({ [name]: v, n: 1 }) }),
  },
  {
    place: "json in json in json",
    named: true,
    put: (v, name) => JSON.stringify({ a: JSON.stringify({ b: JSON.stringify({ [name]: v }) }) }),
  },
  {
    place: "yaml",
    named: true,
    put: (v, name) => `services:\n  api:\n    environment:\n      ${name}: ${v}\n      PORT: 8080`,
  },
  { place: "yaml quoted", named: true, put: (v, name) => `stringData:\n  ${name}: '${v}'\n` },
  { place: "toml", named: true, put: (v, name) => `[remote]\n${name.toLowerCase()} = "${v}"\n` },
  { place: "ini", named: true, put: (v, name) => `[default]\n${name.toLowerCase()} = ${v}\nregion = eu-west-1` },
  { place: "code literal", named: true, put: (v, name) => `const ${camel(name)} = "${v}"\nrun(${camel(name)})` },
  { place: "python literal", named: true, put: (v, name) => `os.environ["${name}"] = '${v}'` },
  { place: "go literal", named: true, put: (v, name) => `\t${camel(name)} := "${v}"` },
  { place: "diff", named: true, put: (v, name) => `@@ -1,2 +1,2 @@\n-${name}=\n+${name}=${v}\n NODE_ENV=test` },
  { place: "numbered lines", named: true, put: (v, name) => `     1→# settings\n     2→${name}=${v}\n     3→DEBUG=1` },
  { place: "flag", named: true, put: (v, name) => `deploy --${name.toLowerCase().replaceAll("_", "-")} ${v} --yes` },
  {
    place: "flag with equals",
    named: true,
    put: (v, name) => `deploy --${name.toLowerCase().replaceAll("_", "-")}=${v}`,
  },
  { place: "field", named: true, put: (v, name) => ({ text: v, key: name }) },
  { place: "docker", named: true, put: (v, name) => `docker run --rm -e ${name}=${v} app:latest` },
  { place: "dockerfile", named: true, put: (v, name) => `FROM node:24\nENV ${name}=${v}\nRUN npm ci` },
  {
    place: "sentence",
    named: true,
    put: (v, name) => `The ${name.toLowerCase().replaceAll("_", " ")} is ${v} as far as I know.`,
  },
]

/** Places for values that fit in a header, a query or an address. */
const WEB_PLACES: { place: string; put: (value: string) => string }[] = [
  { place: "bearer header", put: (v) => `curl -s -H "Authorization: Bearer ${v}" https://api.example.com/v1/me` },
  { place: "escaped bearer header", put: (v) => `{\\"headers\\":{\\"Authorization\\":\\"Bearer ${v}\\"}}` },
  { place: "token header", put: (v) => `Authorization: token ${v}\r\nAccept: */*` },
  { place: "api key header", put: (v) => `> GET /v1/models HTTP/2\n> x-api-key: ${v}\n> accept: */*` },
  {
    place: "query parameter",
    put: (v) => `GET https://api.example.com/v1?limit=5&access_token=${encodeURIComponent(v)}&page=2`,
  },
  {
    place: "url password",
    put: (v) => `git clone https://oauth2:${encodeURIComponent(v)}@git.example.com/team/app.git`,
  },
  { place: "npmrc", put: (v) => `//registry.example.org/:_authToken=${v}\nalways-auth=true` },
  { place: "netrc", put: (v) => `machine api.example.com\n  login sam\n  password ${v}\n` },
  { place: "cookie", put: (v) => `Cookie: theme=dark; session_token=${encodeURIComponent(v)}; lang=en` },
]

/** Secrets with a form and a place of their own. */
export const WHOLE: {
  family: string
  place: string
  known: boolean
  make: (r: Random) => { text: string; secrets: string[]; key?: string }
}[] = [
  ...["RSA ", "EC ", "", "OPENSSH ", "ENCRYPTED ", "DSA "].flatMap((kind) => [
    {
      family: `${kind}private key`.toLowerCase(),
      place: "pem",
      known: true,
      make: (r: Random) => pem(r, kind, "\n", ""),
    },
    {
      family: `${kind}private key`.toLowerCase(),
      place: "pem, escaped",
      known: true,
      make: (r: Random) => pem(r, kind, "\\n", ""),
    },
    {
      family: `${kind}private key`.toLowerCase(),
      place: "pem, escaped twice",
      known: true,
      make: (r: Random) => pem(r, kind, "\\\\n", ""),
    },
    {
      family: `${kind}private key`.toLowerCase(),
      place: "pem, diff",
      known: true,
      make: (r: Random) => pem(r, kind, "\n+", ""),
    },
    {
      family: `${kind}private key`.toLowerCase(),
      place: "pem, numbered",
      known: true,
      make: (r: Random) => pem(r, kind, "\n    12→", ""),
    },
    {
      family: `${kind}private key`.toLowerCase(),
      place: "pem, indented",
      known: true,
      make: (r: Random) => pem(r, kind, "\r\n    ", ""),
    },
    {
      family: `${kind}private key`.toLowerCase(),
      place: "pem, cut off",
      known: true,
      make: (r: Random) => pem(r, kind, "\n", "no end"),
    },
    {
      family: `${kind}private key`.toLowerCase(),
      place: "pem, only its end",
      known: true,
      make: (r: Random) => pem(r, kind, "\n", "no begin"),
    },
  ]),
  {
    family: "pgp private key",
    place: "armor",
    known: true,
    make: (r) => {
      const lines = Array.from({ length: 20 }, () => r.of(BASE64, 64))
      return {
        text: `${dashes("BEGIN PGP PRIVATE KEY BLOCK")}\nVersion: GnuPG v2\n\n${lines.join("\n")}\n=${r.of(BASE64, 4)}\n${dashes("END PGP PRIVATE KEY BLOCK")}`,
        secrets: lines,
      }
    },
  },
  {
    family: "putty private key",
    place: "ppk",
    known: true,
    make: (r) => {
      const lines = Array.from({ length: 8 }, () => r.of(BASE64, 64))
      return {
        text: `PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nPublic-Lines: 1\nAAAAB3NzaC1yc2E\nPrivate-Lines: 8\n${lines.join("\n")}\nPrivate-MAC: ${r.of(HEX, 8)}`,
        secrets: lines,
      }
    },
  },
  {
    family: "gcp service account",
    place: "json file",
    known: true,
    make: (r) => {
      const lines = Array.from({ length: 26 }, () => r.of(BASE64, 64))
      const key = `${dashes("BEGIN PRIVATE KEY")}\n${lines.join("\n")}\n${dashes("END PRIVATE KEY")}\n`
      return {
        text: JSON.stringify({
          type: "service_account",
          project_id: "p",
          private_key: key,
          client_email: "a@p.iam.gserviceaccount.com",
        }),
        secrets: lines,
      }
    },
  },
  {
    family: "kubeconfig key",
    place: "kubeconfig",
    known: true,
    make: (r) => {
      const body = Buffer.from(
        `${dashes("BEGIN RSA PRIVATE KEY")}\n${r.of(BASE64, 64)}\n${r.of(BASE64, 64)}\n${dashes("END RSA PRIVATE KEY")}\n`,
      ).toString("base64")
      return { text: `users:\n- name: admin\n  user:\n    client-key-data: ${body}\n`, secrets: [body.slice(60)] }
    },
  },
  ...[
    "postgres",
    "postgresql+psycopg2",
    "mysql",
    "mongodb+srv",
    "redis",
    "rediss",
    "amqp",
    "amqps",
    "mssql",
    "clickhouse",
    "smtp",
    "ftp",
    "https",
  ].map((scheme) => ({
    family: "url password",
    place: `${scheme} url`,
    known: true,
    make: (r: Random) => {
      const password = r.of(WORD, 10 + r.int(14))
      const user = scheme.startsWith("redis") ? "" : "app"
      return { text: `DATABASE_URL=${scheme}://${user}:${password}@db.internal:5432/app?ssl=true`, secrets: [password] }
    },
  })),
  {
    family: "url password",
    place: "json-escaped slashes",
    known: true,
    make: (r) => {
      const password = r.of(WORD, 16)
      return { text: `{"url":"https:\\/\\/sam:${password}@example.com\\/x"}`, secrets: [password] }
    },
  },
  {
    family: "url password",
    place: "encoded url",
    known: true,
    make: (r) => {
      const password = r.of(WORD, 16)
      return {
        text: `?target=${encodeURIComponent(`postgres://app:${password}@db:5432/app`)}&x=1`,
        secrets: [password],
      }
    },
  },
  {
    family: "slack webhook",
    place: "url",
    known: true,
    make: (r) => {
      const path = `T${r.of(UPPER + DIGITS, 10)}/B${r.of(UPPER + DIGITS, 10)}/${r.of(WORD, 24)}`
      return { text: `curl -X POST https://${"hooks"}.slack.com/services/${path} -d '{}'`, secrets: [path.slice(-24)] }
    },
  },
  {
    family: "discord webhook",
    place: "url",
    known: true,
    make: (r) => {
      const token = r.of(URLSAFE, 68)
      return { text: `https://${"discord"}.com/api/webhooks/${r.of("123456789", 18)}/${token}`, secrets: [token] }
    },
  },
  {
    family: "telegram bot",
    place: "url",
    known: true,
    make: (r) => {
      const token = `A${"A"}${r.of(URLSAFE, 33)}`
      return { text: `https://api.telegram.org/bot${r.of("123456789", 10)}:${token}/getMe`, secrets: [token] }
    },
  },
  {
    family: "sentry dsn",
    place: "url",
    known: true,
    make: (r) => {
      const id = r.of(HEX, 32)
      return { text: `SENTRY_DSN=https://${id}@o12345.ingest.sentry.io/678`, secrets: [id] }
    },
  },
  {
    family: "basic auth",
    place: "header",
    known: true,
    make: (r) => {
      const value = Buffer.from(`sam:${r.of(WORD, 14)}`).toString("base64")
      return { text: `Authorization: Basic ${value}\nHost: example.com`, secrets: [value] }
    },
  },
  {
    family: "basic auth",
    place: "docker config",
    known: true,
    make: (r) => {
      const value = Buffer.from(`sam:${r.of(WORD, 20)}`).toString("base64")
      return {
        text: JSON.stringify({ auths: { "https://index.docker.io/v1/": { auth: value } } }, null, 2),
        secrets: [value],
      }
    },
  },
  {
    family: "basic auth",
    place: "npmrc _auth",
    known: true,
    make: (r) => {
      const value = Buffer.from(`sam:${r.of(WORD, 20)}`).toString("base64")
      return { text: `//npm.example.com/:_auth=${value}\n`, secrets: [value] }
    },
  },
  {
    family: "basic auth",
    place: "curl -u",
    known: true,
    make: (r) => {
      const password = r.of(WORD, 12)
      return { text: `curl -sS -u sam:${password} https://example.com/api`, secrets: [password] }
    },
  },
  {
    family: "mysql password",
    place: "mysql -p",
    known: true,
    make: (r) => {
      const password = r.of(WORD, 12)
      return { text: `mysql -h db -u root -p${password} app < dump.sql`, secrets: [password] }
    },
  },
  {
    family: "connection string",
    place: "azure storage",
    known: true,
    make: (r) => {
      const value = `${r.of(BASE64, 86)}==`
      return {
        text: `DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=${value};EndpointSuffix=core.windows.net`,
        secrets: [value],
      }
    },
  },
  {
    family: "connection string",
    place: "sql server",
    known: true,
    make: (r) => {
      const password = r.of(WORD, 14)
      return {
        text: `Server=tcp:db.example.com,1433;Database=app;User ID=sam;Password=${password};Encrypt=True;`,
        secrets: [password],
      }
    },
  },
  {
    family: "azure sas",
    place: "url",
    known: true,
    make: (r) => {
      const value = encodeURIComponent(`${r.of(BASE64, 43)}=`)
      return {
        text: `https://acme.blob.core.windows.net/c/b?sv=2022-11-02&se=2026-01-01&sp=r&sig=${value}`,
        secrets: [value],
      }
    },
  },
  {
    family: "aws presigned",
    place: "url",
    known: true,
    make: (r) => {
      const value = r.of(HEX, 64)
      return {
        text: `https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=900&X-Amz-Signature=${value}`,
        secrets: [value],
      }
    },
  },
  {
    family: "aws pair",
    place: "csv",
    known: true,
    make: (r) => {
      const id = `${"AK"}IA${r.of(BASE32, 16)}`
      const value = r.of(BASE64, 40)
      return { text: `Access key ID,Secret access key\n${id},${value}\n`, secrets: [id, value] }
    },
  },
  {
    family: "aws credentials",
    place: "ini",
    known: true,
    make: (r) => {
      const value = r.of(BASE64, 40)
      return {
        text: `[default]\naws_access_key_id = ${"AK"}IA${r.of(BASE32, 16)}\naws_secret_access_key = ${value}\n`,
        secrets: [value],
      }
    },
  },
  {
    family: "kubernetes secret",
    place: "yaml",
    known: true,
    make: (r) => {
      const value = Buffer.from(r.of(WORD, 24)).toString("base64")
      return { text: `apiVersion: v1\nkind: Secret\ndata:\n  password: ${value}\n`, secrets: [value] }
    },
  },
  ...["jwt", "openai project", "anthropic api", "github fine-grained", "slack app"].map((family) => ({
    family: `${family}, folded`,
    place: "wrapped at 80 columns",
    known: true,
    make: (r: Random) => {
      const value = FAMILIES.find((f) => f.family === family)!.make(r)
      return { text: `token:\n${value.match(/.{1,80}/g)!.join("\n")}\n`, secrets: [value] }
    },
  })),
  ...["github classic", "google api", "npm"].map((family) => ({
    family: `${family}, folded`,
    place: "string glued in code",
    known: true,
    make: (r: Random) => {
      const value = FAMILIES.find((f) => f.family === family)!.make(r)
      return {
        text: `const t = "${value.slice(0, 24)}" +\n  "${value.slice(24)}"`,
        secrets: [value.slice(0, 24), value.slice(24)],
      }
    },
  })),
]

const BEFORE = "Here is what I found."
const AFTER = "Tell me when it is done."

/** At least `perFamily` of every family, each in a different place. */
export function plant(seed: number, perFamily: number): Planted[] {
  const r = random(seed)
  const planted: Planted[] = []
  const add = (
    family: string,
    known: boolean,
    place: string,
    put: string | { text: string; key: string },
    secrets: string[],
  ) => {
    if (typeof put === "object") planted.push({ family, known, place, text: put.text, key: put.key, secrets, kept: [] })
    else planted.push({ family, known, place, text: `${BEFORE}\n${put}\n${AFTER}`, secrets, kept: [BEFORE, AFTER] })
  }
  for (const { family, name, make } of FAMILIES) {
    for (let i = 0; i < perFamily; i++) {
      const value = make(r)
      const web = r.int(3) === 0
      const where = web ? r.pick(WEB_PLACES) : r.pick(PLACES)
      const shown = web && where.place.match(/query|url|cookie/) ? encodeURIComponent(value) : value
      add(family, true, where.place, where.put(value, name, r), [shown])
    }
  }
  for (const { family, name, make } of GENERIC) {
    for (let i = 0; i < perFamily; i++) {
      const value = make(r)
      const web = r.int(5) === 0 && /^[\w=+/-]+$/.test(value)
      const where = web ? r.pick(WEB_PLACES) : r.pick(PLACES.filter((place) => place.named))
      const shown = web && where.place.match(/query|url|cookie/) ? encodeURIComponent(value) : value
      add(family, false, where.place, where.put(value, name, r), [shown])
    }
  }
  for (const { family, place, known, make } of WHOLE) {
    for (let i = 0; i < Math.max(2, perFamily >> 1); i++) {
      const { text, secrets } = make(r)
      add(family, known, place, text, secrets)
    }
  }
  return planted
}

/** No piece of a secret with this length may stay readable. */
const LEAK = 12

/** The first part of a secret that is still readable, if any. */
export function leakOf(planted: Planted, redacted: string): string | undefined {
  for (const secret of planted.secrets) {
    const width = Math.min(LEAK, secret.length)
    for (let at = 0; at + width <= secret.length; at++) {
      const piece = secret.slice(at, at + width)
      if (redacted.includes(piece)) return piece
    }
  }
  return undefined
}

function dashes(label: string): string {
  return `-----${label}-----`
}

function pem(
  r: Random,
  kind: string,
  newline: string,
  cut: "" | "no end" | "no begin",
): { text: string; secrets: string[] } {
  const lines = [...Array.from({ length: 6 + r.int(20) }, () => r.of(BASE64, 64)), `${r.of(BASE64, 38)}==`]
  const begin = cut === "no begin" ? [] : [dashes(`BEGIN ${kind}PRIVATE KEY`)]
  const end = cut === "no end" ? ["$ ls"] : [dashes(`END ${kind}PRIVATE KEY`)]
  return { text: [...begin, ...lines, ...end].join(newline), secrets: lines }
}

function camel(name: string): string {
  return name.toLowerCase().replace(/_([a-z0-9])/g, (_, c: string) => c.toUpperCase())
}

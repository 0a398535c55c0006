// Recognises names of secrets: `DB_PASSWORD`, `apiKey`, `client-secret`, but not `cacheKey`, `max_tokens` or `public_key`.

export type SecretKind = "password" | "token" | "auth" | "cookie"

/** The kind of secret that a field or variable with this name contains. Undefined if the name indicates no secret. */
export function secretKind(name: string): SecretKind | undefined {
  if (name.length > 120 || !SECRET_WORD.test(name)) return undefined
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "")
  let index = words.length - 1
  while (index > 0 && TRAILING_WORDS.has(words[index]!.replace(/\d+$/, "")) && !isSecretWord(words, index)) index--
  const word = words[index]?.replace(/\d+$/, "")
  if (word === undefined || words.some((w) => NOT_SECRET.has(w))) return undefined
  if (words.some((w) => WORDS_OF_TOKEN_COUNTS.has(w)) && !isSecretPhrase(words, index)) return undefined
  if (PASSWORD.test(word)) return "password"
  if (word === "authorization") return "auth"
  if (word === "auth") return words.length <= 2 ? "auth" : undefined
  if (word === "cookie") return "cookie"
  if (TOKEN.test(word)) return "token"
  if (word === "key" && index > 0 && WORDS_BEFORE_KEY.has(words[index - 1]!)) return "token"
  if (word === "key" && /^[A-Z][A-Z0-9_]+_KEY(?:_[A-Z0-9]+)?$/.test(name)) return "token"
  if ((word === "id" || word === "session") && /session/.test(name.toLowerCase())) return undefined
  return undefined
}

export function ruleFor(kind: SecretKind): string {
  return { password: "password", token: "secret", auth: "authorization", cookie: "cookie" }[kind]
}

export const SECRET_WORD = /pass|pwd|pw$|psk|secret|token|key|cred|auth|cookie|crumb|jwt|bearer|dsn/i
const PASSWORD =
  /^pw$|^pass$|^psk$|password$|passwd$|passwort$|kennwort$|passphrase$|passcode$|pwd$|^(?:db|pg|my|sql|user|root|admin|smtp|mail|ssh|ftp|require|store|key)pass$/
const TOKEN =
  /(?:secret|token|apikey|accesskey|secretkey|authkey|privatekey|accountkey|sharedkey|signingkey)s?$|^(?:credentials?|creds?|crumb|jwt|bearer|pat)$/
/** Words before `key` that make it a secret: `api_key` is a secret; `cache_key`, `primary_key` and `public_key` are not. */
const WORDS_BEFORE_KEY = new Set(
  "api access secret private preshared auth encryption encrypt signing sign account master service admin ssh deploy app application consumer shared storage jwt hmac aes webhook client server subscription license crypto cipher decryption integration ingest write project role anon functions host function system".split(
    " ",
  ),
)
/** Words that may follow the word for the secret without changing its kind, such as `value` in `password_value`. */
const TRAILING_WORDS = new Set(
  "value prod production dev development staging stage live test base key string data plain raw main primary secondary default old new current backup local id hex b64 base64 env secret token password header".split(
    " ",
  ),
)
/**
 * Words that show that `token` means a position in a list or a piece of text. They do not affect other words: `CURSOR_API_KEY` is
 * still a secret.
 */
const WORDS_OF_TOKEN_COUNTS = new Set(
  "page next previous continuation cursor cancel cancellation pagination stop eos bos pad unk mask special design tokenizer input output prompt completion".split(
    " ",
  ),
)
const NOT_SECRET = new Set(
  "public max min num count limit total usage length size type regex pattern path file url uri endpoint arn name field label prefix suffix expires expiry ttl placeholder hint error message description title count hash digest algorithm checksum fingerprint index keyword keywords column sort primarykey foreign cache partition id_token_hint".split(
    " ",
  ),
)

/**
 * Whether the word and the one before it name a secret, whatever other words the name contains: `api key`, `auth token`, `client
 * secret`.
 */
function isSecretPhrase(words: string[], at: number): boolean {
  const word = words[at]!
  if (at === 0) return /^(?:api|auth|access|secret|private)(?:key|token)$/.test(word)
  if (word === "secret" || PASSWORD.test(word)) return true
  return WORDS_BEFORE_KEY.has(words[at - 1]!) && (word === "key" || word === "token")
}

function isSecretWord(words: string[], at: number): boolean {
  const word = words[at]!.replace(/\d+$/, "")
  return PASSWORD.test(word) || TOKEN.test(word) || (word === "key" && at > 0 && WORDS_BEFORE_KEY.has(words[at - 1]!))
}

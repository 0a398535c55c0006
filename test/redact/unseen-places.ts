import type { Random } from "./secrets.ts"

// Forty kinds of secrets that were chosen from the lists of gitleaks, trufflehog, detect-secrets, Nosey Parker and
// GitHub's secret scanning before the rules for places were written, among kinds that no rule or test had. Fourteen are
// issuers' formats; twenty-six are places in which a value without a format is written. They stay as they were chosen:
// `places.test.ts` counts how many are found.

export type UnseenKind = {
  kind: string
  make: (r: Random) => { text: string; secrets: string[] }
}

const LOWER = "abcdefghijklmnopqrstuvwxyz"
const DIGITS = "0123456789"
const HEX = `${DIGITS}abcdef`
const ALNUM = LOWER + DIGITS
const WORD = LOWER + LOWER.toUpperCase() + DIGITS
const BASE64 = `${WORD}+/`
const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

const uuid = (r: Random) => [8, 4, 4, 4, 12].map((n) => r.of(HEX, n)).join("-")

/** An issuer's format as in documentation and logs: after a word or two, without a variable's name. */
function format(kind: string, make: (r: Random) => [mark: string, body: string, end?: string]): UnseenKind {
  return {
    kind,
    make: (r) => {
      const [mark, body, end = ""] = make(r)
      return { text: `we used ${mark}${body}${end} until now`, secrets: [body] }
    },
  }
}

/** A value in a place; `HERE` marks the value. */
function place(kind: string, text: string, value: (r: Random) => string): UnseenKind {
  return {
    kind,
    make: (r) => {
      const secret = value(r)
      return { text: text.replace("HERE", () => secret), secrets: [secret] }
    },
  }
}

const password = (r: Random) => `${r.of(WORD, 9)}${r.pick(["!", "#", "*"])}${r.of(DIGITS, 2)}`
const token = (r: Random) => r.of(WORD, 24)

export const UNSEEN_PLACES: UnseenKind[] = [
  format("adafruit io", (r) => [`ai${"o_"}`, r.of(WORD, 28)]),
  format("amazon mws", (r) => [`am${"zn.mws."}`, uuid(r)]),
  format("braintree access token", (r) => [`access_${"token$production$"}${r.of(ALNUM, 16)}$`, r.of(HEX, 32)]),
  format("defined networking", (r) => [`dn${"key-"}`, `${r.of(ALNUM, 26)}-${r.of(ALNUM, 52)}`]),
  format("dependency-track", (r) => [`od${"t_"}`, r.of(WORD, 32)]),
  format("frame.io", (r) => [`fi${"o-u-"}`, r.of(`${ALNUM}-_=`, 64)]),
  format("infracost", (r) => [`ic${"o-"}`, r.of(WORD, 32)]),
  format("jina", (r) => [`ji${"na_"}`, `${r.of(HEX, 32)}${r.of(WORD, 28)}`]),
  format("scalingo", (r) => [`tk-${"us-"}`, r.of(WORD, 48)]),
  format("stackhawk", (r) => [`ha${"wk."}`, `${r.of(WORD, 20)}.${r.of(WORD, 20)}`]),
  format("twitch stream", (r) => [`li${"ve_"}${r.of("123456789", 9)}_`, r.of(WORD, 30)]),
  format("typeform", (r) => [`tf${"p_"}`, r.of(WORD, 59)]),
  format("ubidots", (r) => [`BB${"FF-"}`, r.of(WORD, 30)]),
  format("wakatime", (r) => [`wa${"ka_"}`, uuid(r)]),
  place(
    "okta header",
    "curl -H 'Authorization: SSWS HERE' https://acme.okta.com/api/v1/users",
    (r) => `00${r.of(WORD, 40)}`,
  ),
  place("jenkins crumb", "-H 'Jenkins-Crumb:HERE' https://ci.example.com/job/x/build", (r) => r.of(HEX, 32)),
  place(
    "kubeadm join",
    "kubeadm join 10.0.0.1:6443 --token HERE --discovery-token-ca-cert-hash x",
    (r) => `${r.of(ALNUM, 6)}.${r.of(ALNUM, 16)}`,
  ),
  place(
    "wireguard private key",
    "[Interface]\nAddress = 10.0.0.3/32\nPrivateKey = HERE\n",
    (r) => `${r.of(BASE64, 43)}=`,
  ),
  place(
    "wireguard preshared key",
    "[Peer]\nPresharedKey = HERE\nAllowedIPs = 0.0.0.0/0\n",
    (r) => `${r.of(BASE64, 43)}=`,
  ),
  place("otpauth address", "otpauth://totp/Acme:sam@example.com?secret=HERE&issuer=Acme", (r) => r.of(BASE32, 32)),
  place(".net credential", 'client.Credentials = new NetworkCredential("mailer@example.com", "HERE");', password),
  place(".net appSettings", '<add key="SmtpPassword" value="HERE" />', password),
  place("spring property", '<property name="password" value="HERE"/>', password),
  place("plist", "<key>apiPassword</key>\n\t<string>HERE</string>", password),
  place("android strings", '<string name="maps_api_key">HERE</string>', token),
  place("gradle credentials", "credentials {\n    username 'deployer'\n    password 'HERE'\n}", password),
  place("psexec", "psexec \\\\10.0.94.12 -u Administrator -p HERE cmd /c dir", password),
  place("smbclient", "smbclient //nas/share -U 'backup%HERE' -c ls", password),
  place("az login", "az login --service-principal -u http://deploy -p HERE --tenant acme.example.com", token),
  place("powershell secure string", '$p = ConvertTo-SecureString "HERE" -AsPlainText -Force', password),
  place("sql create user", "CREATE USER app WITH PASSWORD 'HERE' CREATEDB;", password),
  place("sql identified by", "ALTER USER 'app'@'%' IDENTIFIED BY 'HERE';", password),
  place("redis requirepass", "maxmemory 2gb\nrequirepass HERE\nappendonly yes", token),
  place("python basic auth", "requests.get(url, auth=('deployer', 'HERE'), timeout=10)", password),
  place("smtp login", 'server.login("mailer@example.com", "HERE")', password),
  place("default of getenv", 'secret = os.getenv("STRIPE_SIGNING_SECRET", "HERE")', token),
  place("shell default", `export DB_PASSWORD="$${"{DB_PASSWORD:-"}HERE}"`, token),
  place("terraform variable", 'variable "db_password" {\n  type    = string\n  default = "HERE"\n}', password),
  place("docker env with a space", "FROM node:24\nENV API_TOKEN HERE\nRUN npm ci", token),
  place("form data", 'Content-Disposition: form-data; name="password"\r\n\r\nHERE\r\n--x', password),
]

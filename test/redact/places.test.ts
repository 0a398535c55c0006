import { describe, expect, test } from "vitest"
import { redactRecord, redactText } from "../../src/redact/redact.ts"
import { CONTEXTS, readable } from "./contexts.ts"
import { random } from "./secrets.ts"
import { UNSEEN_PLACES } from "./unseen-places.ts"

const WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

test("90 % of forty kinds that were chosen before the rules for places are redacted", () => {
  const r = random(143)
  const shown = UNSEEN_PLACES.flatMap(({ kind, make }) =>
    Array.from({ length: 8 }, () => {
      const { text, secrets } = make(r)
      return { kind, missed: readable(secrets, redactText(text), CONTEXTS[0]!) !== undefined }
    }),
  )
  const missed = shown.filter((one) => one.missed)
  const kinds = new Set(missed.map((one) => one.kind))
  const report = `${missed.length} of ${shown.length}: ${JSON.stringify([...kinds])}`
  expect(new Set(shown.map((one) => one.kind)).size).toBe(40)
  expect(1 - missed.length / shown.length, report).toBeGreaterThanOrEqual(0.9)
  expect(40 - kinds.size, report).toBeGreaterThanOrEqual(36)
})

/** Places that alone reveal that a value is a secret; `HERE` is the value. */
const PLACES: Record<string, string[]> = {
  "a name and a value in two fields": [
    "- name: DB_PASSWORD\n  value: HERE\n",
    '- name: "API_SECRET"\n  value: "HERE"\n',
    '{"name":"DB_PASSWORD","value":"HERE"}',
    '{\\"name\\": \\"DB_PASSWORD\\", \\"value\\": \\"HERE\\"}',
    '{"name":"API_TOKEN","slotSetting":false,"value":"HERE"}',
    '{"Parameter":{"Name":"/prod/db/password","Type":"SecureString","Value":"HERE"}}',
    "ParameterKey=DBPassword,ParameterValue=HERE",
  ],
  "a Kubernetes secret": [
    "kind: Secret\nstringData:\n  mykey: HERE\n",
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\nstringData:\n  user: app\n  license: 'HERE'\n",
    '{"apiVersion":"v1","data":{"config":"HERE"},"kind":"Secret"}',
    "stringData:\\n  mykey: HERE\\nkind: Secret\\n",
  ],
  "a table": [
    "| name | value |\n|---|---|\n| DB_PASSWORD | HERE |",
    "| `API_KEY` | `HERE` |",
    "|  SecretAccessKey |  HERE  |",
    " id | email | api_key\n----+-------+--------\n  1 | a@example.com | HERE",
    "| user | password |\n|---|---|\n| sam | HERE |\n",
    "+----+----------+\n| id | password |\n+----+----------+\n|  1 | HERE |\n",
    "user,password\nalice,HERE",
    "id,email,api_key,plan\n1,a@example.com,HERE,free\n",
    "Key                 Value\n---                 -----\npassword            HERE",
  ],
  markup: [
    "<username>u</username><password>HERE</password>",
    '<add key="SmtpPassword" value="HERE" />',
    "<key>apiPassword</key>\n\t<string>HERE</string>",
    '<string name="maps_api_key">HERE</string>',
    "**Password:** HERE",
    "**Password**: HERE",
  ],
  code: [
    'ds.setPassword("HERE");',
    'Client::builder().password("HERE").build()',
    "define('DB_PASSWORD', 'HERE');",
    'os.getenv("STRIPE_SECRET", "HERE")',
    "ENV.fetch('API_TOKEN', 'HERE')",
    "requests.get(url, auth=('deployer', 'HERE'))",
    'new NetworkCredential("mailer", "HERE")',
    'smtp.login("mailer@example.com", "HERE")',
    "CREATE USER app WITH PASSWORD 'HERE'",
    "ALTER USER app IDENTIFIED BY 'HERE'",
  ],
  "a command": [
    "ssh-keygen -t ed25519 -N 'HERE' -f k",
    "zip -P HERE a.zip b",
    "mongosh -u root -p HERE --authenticationDatabase admin",
    "ldapsearch -x -D cn=admin -w HERE",
    "htpasswd -bc file user HERE",
    "echo 'HERE' | sudo -S apt update",
    'echo "root:HERE" | chpasswd',
    'gh secret set API_TOKEN --body "HERE"',
    'curl -b "PHPSESSID=HERE" http://example.com',
    "cd x && mysqldump -u root -pHERE db",
  ],
  "a file of settings": [
    "db.internal:5432:app:admin:HERE",
    'network={ ssid="x" psk="HERE" }',
    "[Peer]\nPresharedKey = HERE\n",
    "ENV API_TOKEN HERE\n",
    "requirepass HERE\n",
  ],
  "an address": ["https://api.example.com/v1?key=HERE", "https://api.example.com/v1?a=1&key=HERE&b=2"],
  "a sentence": [
    "The admin login is joe@example.com with pass HERE",
    "my password's HERE",
    "пароль от базы: HERE",
    "ｐａｓｓｗｏｒｄ：HERE",
    "pаsswоrd=HERE",
    '{"p\\u0061ssword":"HERE"}',
  ],
}

describe("a value that only its place reveals", () => {
  for (const [place, texts] of Object.entries(PLACES)) {
    test(`in ${place}`, () => {
      for (const text of texts) {
        for (const seed of [1, 2, 3, 4]) {
          const secret = place === "a sentence" ? `${random(seed).of(WORD, 12)}!4` : random(seed).of(WORD, 24)
          const redacted = redactText(text.replace("HERE", secret))
          expect(redacted).toMatch(/\[REDACTED:[a-z-]+\]/)
          expect(redacted.replace(/\[REDACTED:[a-z-]+\]/, "HERE"), text).toBe(text)
          expect(redactText(redacted)).toBe(redacted)
        }
      }
    })
  }

  test("in a record's own fields", () => {
    const value = random(5).of(WORD, 43)
    expect(redactRecord({ Name: "/prod/db/password", Type: "SecureString", Value: value }).record).toEqual({
      Name: "/prod/db/password",
      Type: "SecureString",
      Value: "[REDACTED:password]",
    })
    expect(redactRecord({ kty: "OKP", crv: "Ed25519", x: value, d: value }).record).toEqual({
      kty: "OKP",
      crv: "Ed25519",
      x: value,
      d: "[REDACTED:secret]",
    })
  })

  test("only the private fields of a JSON Web Key", () => {
    const [x, d] = [random(6).of(WORD, 43), random(7).of(WORD, 43)]
    for (const q of ['"', '\\"']) {
      const key = (secret: string) => `{"kty":"EC","crv":"P-256","x":"${x}","d":"${secret}"}`.replaceAll('"', q)
      expect(redactText(key(d))).toBe(key("[REDACTED:private-key]"))
    }
    expect(redactText(`{"kty":"oct","k":"${d}","alg":"HS256"}`)).toBe(
      '{"kty":"oct","k":"[REDACTED:private-key]","alg":"HS256"}',
    )
    expect(redactText(`{"d":"${d}","x":"${x}"}`)).toContain(d)
  })

  test("encoded keys, and keys with a form of their own", () => {
    const hex = random(8).of("0123456789abcdef", 64)
    const lines = [1, 2, 3, 4].map((n) => random(n).of("0123456789abcdef", 32))
    const env = Buffer.from(`DB_PASSWORD=${random(9).of(WORD, 24)}\nX=1\n`).toString("base64")
    const pem = Buffer.from(`-----BEGIN RSA ${"PRIVATE"} KEY-----\n${hex}`).toString("hex")
    expect(redactText(`echo ${env} | base64 -d`)).not.toContain(env.slice(-16))
    expect(redactText(pem)).toBe("[REDACTED:private-key]")
    expect(redactText(`xp${"rv9s21ZrQH143K"}${random(10).of(WORD, 95)}`)).toBe("[REDACTED:wallet-key]")
    const vpn = redactText(
      `-----BEGIN OpenVPN Static key V1-----\n${lines.join("\n")}\n-----END OpenVPN Static key V1-----`,
    )
    expect(vpn).toBe("-----BEGIN OpenVPN Static key V1-----[REDACTED:private-key]\n-----END OpenVPN Static key V1-----")
    expect(redactText(`Authorization: Digest username="x", response="${hex.slice(0, 32)}"`)).toBe(
      'Authorization: Digest username="x", response="[REDACTED:authorization]"',
    )
  })

  test("text that only looks like such a place is kept", () => {
    const kept = [
      "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db-credentials-2\n",
      "- name: DB_PASSWORD\n  value: $(SECRET_FROM_VAULT)\n",
      '{"name":"token","value":"string"}',
      "kind: Secret\nstringData:\n  mykey: <your-key>\n  other: $(KEY)\n",
      "kind: SecretStore\ndata:\n  config: aGVsbG8gd29ybGQgYW5kIG1vcmU=\n",
      "| name | type |\n|---|---|\n| api_key | string |\n| password | required, 8 to 64 characters |",
      "| key | value2 |\n| token | a word |",
      " id | token_count\n----+-------\n  1 | 123456789",
      "user,password\nname,string",
      "host, port, password\nfoo1, bar22, bazQux3\n",
      "<password>password</password> <token>$(token)</token>",
      'form.setPassword("password")',
      'await user.comparePassword("Hunter2Hunter2")',
      't("password", "Password2")',
      'login("user", password)',
      "CREATE USER app WITH PASSWORD 'changeme'",
      "the password 'must have 8 characters'",
      "zip -r a.zip dir1",
      "mkdir -p src/components2/TokenList3",
      "psql -p 5432 -U app_user2",
      "docker run -p 8080:8080 -u node2",
      "sudo -u postgres2 psql",
      "echo ok | sudo tee /etc/x2y3z4",
      "postmaster@[IPv6:2001:0db8:85a3:0000:0000:8a2e:0370:192.168.1.1]",
      "main.go:1234:56: undefined: x2y3z4",
      "2026-11-18T10:00:00.000Z web-1:8080:ready",
      "https://example.com/list?key=created_at_desc2",
      "passt mir gut, danke2you!",
      "pass --verbose2! to see more",
      "set the token's length to 20",
    ]
    for (const text of kept) expect(redactText(text)).toBe(text)
  })
})

describe("passwords in addresses", () => {
  test("of four or more characters are redacted", () => {
    for (const password of ["x7Kq", "k9Zp3", "hunter", "s3cr3t", "t0pGear", "Wq8#mZ2x", "Tr0ub4d0r"]) {
      for (const scheme of ["postgres", "https", "amqp", "redis"]) {
        expect(redactText(`${scheme}://app:${password}@db.example.com:5432/x`)).toBe(
          `${scheme}://app:[REDACTED:url-password]@db.example.com:5432/x`,
        )
      }
    }
  })

  test("with a slash are redacted, and a port and a path are kept", () => {
    const password = `${random(11).of(WORD, 8)}/${random(12).of(WORD, 8)}`
    expect(redactText(`postgres://app:${password}@db:5432/x`)).toBe("postgres://app:[REDACTED:url-password]@db:5432/x")
    for (const kept of ["http://host:8080/a1B2c3D4e5F6g7@v2", "http://localhost:3000/@scope/package@1.2.3"]) {
      expect(redactText(kept)).toBe(kept)
    }
  })
})

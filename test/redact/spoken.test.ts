import { describe, expect, test } from "vitest"
import { redactRecord, redactText } from "../../src/redact/redact.ts"
import { random } from "./secrets.ts"

const WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
const generated = (seed: number) => `${random(seed).of(WORD, 12)}!7`

describe("passwords in sentences", () => {
  const sentences = [
    ["German", "das Passwort lautet SECRET", "Passwort: SECRET", "Kennwort = SECRET", "Dein Passwort ist SECRET."],
    ["French", "le mot de passe est SECRET", "Mot de passe : SECRET", "mdp: SECRET", "mot_de_passe=SECRET"],
    ["Spanish", "la contraseña es SECRET", "Contraseña: SECRET", "clave: SECRET", "contrasena = SECRET"],
    ["Russian", "пароль: SECRET", "Пароль — SECRET", "ПАРОЛЬ SECRET", "логин admin, пароль SECRET"],
    ["Chinese", "密码：SECRET", "密码是SECRET", "数据库密码: SECRET，请保密", "密碼 SECRET"],
    ["Japanese", "パスワードは SECRET です", "パスワード：SECRET", "パスワード SECRET", "暗証番号: SECRET"],
  ]
  for (const [language, ...texts] of sentences) {
    test(`in ${language}`, () => {
      for (const [i, text] of texts.entries()) {
        for (const secret of [generated(i), "Winter2026!x", "tr0ub4dor&3x"]) {
          const shown = text.replace("SECRET", secret)
          expect(redactText(shown)).toBe(text.replace("SECRET", "[REDACTED:password]"))
          expect(redactText(`\u001b[1m${shown}\u001b[0m`)).not.toContain(secret)
        }
      }
    })
  }

  test("next to a user's name", () => {
    for (const text of [
      "log in as admin / SECRET",
      "Login: root / `SECRET`",
      "creds: sam@example.com / SECRET please",
    ]) {
      expect(redactText(text.replace("SECRET", "Winter2026!x"))).toBe(text.replace("SECRET", "[REDACTED:password]"))
    }
  })

  test("as the words of a wallet", () => {
    const words = "abandon ability able about above absent absorb abstract absurd abuse access accident".split(" ")
    for (const phrase of [words, [...words, ...words]]) {
      for (const text of [
        `seed phrase: ${phrase.join(" ")}`,
        `MNEMONIC="${phrase.join(" ")}"`,
        `my recovery phrase is ${phrase.join(", ")}`,
        `Seed words:\n${phrase.map((word, i) => `${i + 1}. ${word}`).join("\n")}\n`,
      ]) {
        expect(redactText(text), text).not.toMatch(/abandon|accident/)
      }
    }
  })

  test("text that only mentions a password is kept", () => {
    const texts = [
      "Das Passwort ist zu kurz, bitte mindestens 12 Zeichen",
      "Mot de passe oublié ? Cliquez ici",
      "la contraseña es obligatoria",
      "clave_primaria: id_usuario2",
      "mdp = MDP(states2, actions)",
      "введите пароль для user2",
      "密码长度必须大于8位",
      "パスワードをリセットする",
      "read / write access for user2 / group3",
      "login / logout / signup2!",
      "seed phrase: never share it with anybody, whatever they promise you, and write it down",
      "random seed: 42",
      "--- PASS: TestParseV2Config (0.00s)",
      "PASS: addr2line -f option",
    ]
    for (const text of texts) expect(redactText(text)).toBe(text)
  })
})

describe("names that were mistaken for something else", () => {
  const value = random(3).of("0123456789abcdef", 64)

  test("the key of Cursor is not mistaken for a cursor in a list", () => {
    for (const text of [
      `CURSOR_API_KEY=${"ke"}y_${value}`,
      `cursor_api_key: "${value}"`,
      `export CURSOR_API_KEY=${"cr"}sr_${value}`,
      `${"cr"}sr_${value}`,
      `${"ke"}y_${value}`,
    ]) {
      expect(redactText(text), text).not.toContain(value.slice(0, 12))
    }
    expect(redactRecord({ CURSOR_API_KEY: value }).record).toEqual({ CURSOR_API_KEY: "[REDACTED:secret]" })
    for (const kept of [`next_page_token: "${value}"`, `cursor_token = "${value}"`, "prompt_tokens: 1234567890"]) {
      expect(redactText(kept)).toBe(kept)
    }
  })

  test("a token in the user's place of an address is found, whatever is in the password's place", () => {
    const token = value.slice(0, 40)
    for (const password of [":x-oauth-basic", ":x", ":"]) {
      expect(redactText(`https://${token}${password}@github.com/a/b`)).toBe(
        `https://[REDACTED:url-token]${password}@github.com/a/b`,
      )
    }
  })

  test("a quoted key may contain any symbols", () => {
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      const key = `${"django"}-insecure-${random(seed).of("abcdefghijklmnopqrstuvwxyz0123456789!@#%^&*(-_=+)", 50)}`
      expect(redactText(`SECRET_KEY = '${key}'`)).toBe("SECRET_KEY = '[REDACTED:secret]'")
    }
  })
})

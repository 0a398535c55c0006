import { createHmac, randomBytes } from "node:crypto"

// Standard Webhooks: with any of its libraries, the receiver can check that a message is from dex, complete and recent.

const PREFIX = "whsec_"

export function newSecret(): string {
  return PREFIX + randomBytes(32).toString("base64")
}

/** The headers of one attempt. The id is the message's; the time is the attempt's. */
export function signedHeaders(secret: string, id: string, at: number, body: string): Record<string, string> {
  const timestamp = Math.floor(at / 1000)
  const key = Buffer.from(secret.slice(PREFIX.length), "base64")
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": `v1,${signature}` }
}

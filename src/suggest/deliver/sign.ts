import { createHmac, randomBytes } from "node:crypto"

// Standard Webhooks: the receiver checks with any of its libraries that a message is dex's, whole and fresh.

const PREFIX = "whsec_"

export function newSecret(): string {
  return PREFIX + randomBytes(32).toString("base64")
}

/** The headers of one attempt. The id is the message's own, the time is the attempt's. */
export function signedHeaders(secret: string, id: string, at: number, body: string): Record<string, string> {
  const timestamp = Math.floor(at / 1000)
  const key = Buffer.from(secret.slice(PREFIX.length), "base64")
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": `v1,${signature}` }
}

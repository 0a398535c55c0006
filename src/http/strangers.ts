import type { Socket } from "node:net"

export type Strangers = {
  /** Somebody new is connected. */
  add(socket: Socket): void
  /** This one has shown the token: it no longer makes room for others. */
  isKnown(socket: Socket): void
}

/**
 * Keeps those who never showed the token from filling the house. Whoever has waited longest makes room for the next one,
 * so that the owner, who shows it at once, always gets in.
 */
export function createStrangers(most: number): Strangers {
  const waiting = new Set<Socket>()
  return {
    add(socket) {
      waiting.add(socket)
      socket.once("close", () => waiting.delete(socket))
      const [longest] = waiting
      if (waiting.size <= most || !longest) return
      waiting.delete(longest)
      longest.destroy()
    },
    isKnown: (socket) => void waiting.delete(socket),
  }
}

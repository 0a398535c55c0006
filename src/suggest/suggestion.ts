// In core, since the store keeps them.
export * from "../core/suggestion.ts"

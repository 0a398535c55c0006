import type { UsageGroup } from "../../tools/usage/usage.ts"

/** What use is summed up by, as people say it. */
export const GROUP_NAMES: Record<UsageGroup, string> = {
  day: "Day",
  week: "Week",
  month: "Month",
  block: "Five hours",
  project: "Project",
  agent: "Agent",
  model: "Model",
  branch: "Branch",
  conversation: "Conversation",
  commit: "Commit",
  pull_request: "Pull request",
}

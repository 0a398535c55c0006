import { geminiAppConnector } from "../../packages/more-agents/src/gemini-app.ts"
import { onFixtures } from "../support/exports.ts"
import { testConnector } from "./contract.ts"

testConnector(onFixtures(geminiAppConnector), "test/fixtures/gemini_app")

import { pi } from "../../src/agents/pi/connector.ts"
import { testConnector } from "./contract.ts"

testConnector(pi, "test/fixtures/pi")

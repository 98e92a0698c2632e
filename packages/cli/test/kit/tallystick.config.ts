import { defineConfig } from '@tallystick/cli'
import { shopAgent } from './shop.ts'

export default defineConfig(({ verb, agent, ledgerPath, model, runId }) => {
  process.stderr.write(`${JSON.stringify({ verb, agent, ledgerPath, modelId: model?.modelId, runId })}\n`)
  return { agents: [shopAgent()], close: () => void process.stderr.write('config closed\n') }
})

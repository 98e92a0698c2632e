import { defineConfig } from '@tallystick/cli'
import { hostAgents } from './host.ts'

export default defineConfig(() => ({
  agents: hostAgents(),
  prices: { 'host-model': { inputUsd: 1, outputUsd: 2 } },
}))

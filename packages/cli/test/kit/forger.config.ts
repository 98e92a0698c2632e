import { defineConfig } from '@tallystick/cli'
import { forger } from './forger.ts'

export default defineConfig({ agents: [forger()] })

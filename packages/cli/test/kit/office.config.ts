import { defineConfig } from '@tallystick/cli'
import { boss } from './office.ts'

export default defineConfig({ agents: [boss()] })

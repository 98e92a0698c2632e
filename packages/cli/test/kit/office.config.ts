import { defineConfig } from '@tallystick/cli'
import { banker, boss, owner } from './office.ts'

export default defineConfig(() => ({ agents: [boss(), owner(), banker()] }))

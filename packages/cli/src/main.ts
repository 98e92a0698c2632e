#!/usr/bin/env node
import { enableCompileCache } from 'node:module'

// A reader that has seen enough (`| head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

// Halves the time until the command begins; it covers what is imported from here on.
enableCompileCache()
const { runCommandLine } = await import('./program.ts')
process.exitCode = await runCommandLine(process.argv.slice(2))

#!/usr/bin/env node
// Whole, not by name: older hosts have the module and not all of its names.
import * as nodeModule from 'node:module'
import { findVersionFault } from './version.ts'

// A reader that has seen enough (`| head`) is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

const fault = findVersionFault(process.versions)
if (fault === undefined) {
  // Halves the time until the command begins; it covers what is imported from here on.
  nodeModule.enableCompileCache?.()
  const { runCommandLine } = await import('./program.ts')
  process.exitCode = await runCommandLine(process.argv.slice(2))
} else {
  process.stderr.write(`error: ${fault}\n`)
  process.exitCode = 1
}

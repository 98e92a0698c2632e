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
  const words = process.argv.slice(2)
  // Asked by scripts and editors: it needs nothing of what a verb does.
  if (words.length === 1 && (words[0] === '--version' || words[0] === '-V')) {
    const { readOwnVersion } = await import('./version.ts')
    process.stdout.write(`${readOwnVersion()}\n`)
  } else {
    const { runCommandLine } = await import('./program.ts')
    process.exitCode = await runCommandLine(words)
  }
} else {
  process.stderr.write(`error: ${fault}\n`)
  process.exitCode = 1
}

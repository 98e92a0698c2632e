import { enableCompileCache } from 'node:module'

// The program begins sooner; it covers what is imported from here on.
enableCompileCache()
const { runDemo } = await import('./run-demo.ts')
process.exitCode = await runDemo(process.argv.slice(2))

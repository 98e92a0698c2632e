import { enableCompileCache } from 'node:module'

// Makes later starts faster. It covers what is imported from here on.
enableCompileCache()
const { runDemo } = await import('./run-demo.ts')
process.exitCode = await runDemo(process.argv.slice(2))

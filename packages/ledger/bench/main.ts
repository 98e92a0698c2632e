// The benchmarks of ledgers. Usage: main.ts [large [EVENTS]]. Without words, ledgers against their databases used by
// hand; with `large`, what a file of so many events costs to open and to fold a run of.
const [which] = process.argv.slice(2)
if (which === undefined) await import('./compare.ts')
else if (which === 'large') await import('./large.ts')
else {
  console.error(`There is no benchmark ${which}. Say large, or nothing.`)
  process.exitCode = 2
}

import { rolldown } from 'rolldown'
import { readyPage } from '../ready-page.ts'

/** Lays a program and all that it imports, but modules of Node, together into one file of any runtime. */
export async function bundleProgram(input: string, file: string): Promise<void> {
  const bundle = await rolldown({
    input,
    platform: 'neutral',
    external: /^node:/,
    plugins: [readyPage],
    logLevel: 'warn',
  })
  await bundle.write({ file, format: 'esm', codeSplitting: false })
  await bundle.close()
}

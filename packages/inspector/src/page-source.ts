import { fileURLToPath } from 'node:url'

/** The page, made from its sources. A published package holds it ready-made in the place of this module. */
export const page: string = await buildPage()

async function buildPage(): Promise<string> {
  const { build } = await import('vite')
  const configFile = fileURLToPath(new URL('../vite.config.ts', import.meta.url))
  // Another loader writes a file and removes it, which `tallystick dev` would take for a change.
  const made = await build({ configFile, configLoader: 'native', build: { write: false } })
  const outputs = [made].flat().flatMap((each) => ('output' in each ? each.output : []))
  const html = outputs.find(({ fileName }) => fileName === 'index.html')
  if (html?.type !== 'asset') throw new Error('Vite made no index.html of packages/inspector.')
  return String(html.source)
}

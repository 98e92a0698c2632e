import { posix } from 'node:path'
import { anchorsOf, linksOf } from '../pages/page.ts'
import { type Finding, lineAt, type SourceFile } from './finding.ts'

/** A page of the registry links to the repository by its address. */
const ours = /^https:\/\/github\.com\/tallystick\/tallystick\/(?:blob|tree)\/main\//

/**
 * Every link within the repository leads to a committed file or folder, and to a heading that is there. `paths` are those
 * of all committed files, since a link may lead to one that is no text.
 */
export function links(files: readonly SourceFile[], paths: readonly string[]): readonly Finding[] {
  const places = new Set(paths.flatMap(withFolders))
  const anchors = new Map<string, readonly string[]>()
  const pages = files.filter(({ path }) => path.endsWith('.md'))
  for (const { path, text } of pages) anchors.set(path, anchorsOf(text))
  return pages.flatMap(({ path, text }) =>
    linksOf(text).flatMap((link): readonly Finding[] => {
      const target = placeOf(path, link)
      if (target === undefined) return []
      const { place, anchor } = target
      const headings = anchors.get(place)
      const fault = !places.has(place)
        ? `leads to ${place}, which is not there`
        : anchor !== undefined && headings?.includes(anchor) !== true
          ? `leads to #${anchor}, and ${place} has no such heading`
          : undefined
      if (fault === undefined) return []
      const line = lineAt(text, text.indexOf(`](${link})`))
      return [{ rule: 'links', level: 'error', path, line, message: `"${link}" ${fault}.` }]
    }),
  )
}

/** Where a link leads within the repository, and to which heading; `undefined` for an address elsewhere. */
function placeOf(
  from: string,
  link: string,
): { readonly place: string; readonly anchor: string | undefined } | undefined {
  const [target = '', anchor] = link.split('#')
  if (ours.test(target)) return { place: trimmed(target.replace(ours, '')), anchor }
  if (/^[a-z]+:/i.test(link)) return undefined
  return { place: target === '' ? from : trimmed(posix.join(posix.dirname(from), target)), anchor }
}

/** A path without a slash at its end. */
function trimmed(path: string): string {
  return path.replace(/\/$/, '')
}

/** A file's path, and those of the folders that it is in. */
function withFolders(path: string): readonly string[] {
  const parts = path.split('/')
  return parts.map((_part, index) => parts.slice(0, index + 1).join('/'))
}

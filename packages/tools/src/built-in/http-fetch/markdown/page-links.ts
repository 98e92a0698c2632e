const maxLinkCharacters = 2_000

/** Where a link of a page leads, as Markdown takes it; `undefined` for what is no address of a page or of mail. */
export function linkTarget(href: string | undefined, base: string): string | undefined {
  if (href === undefined || href.length > maxLinkCharacters) return undefined
  const url = URL.parse(href, base)
  if (url === null || !['http:', 'https:', 'mailto:'].includes(url.protocol)) return undefined
  if (url.href.length > maxLinkCharacters) return undefined
  return url.href.replaceAll('(', '%28').replaceAll(')', '%29')
}

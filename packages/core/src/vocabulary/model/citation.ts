/** Where something can be read: an address, or a document. What the provider did not say is left out. */
export interface Source {
  readonly url?: string
  readonly title?: string
  /** The id under which the provider keeps the document. */
  readonly fileId?: string
}

/** What a text leans on, as its provider says it. */
export interface Citation extends Source {
  /** The words of the source that support the text. */
  readonly quote?: string
  /** Pages of the source, from 1, the last included. */
  readonly pages?: { readonly from: number; readonly to: number }
  /** The place in the text that it supports, in characters from 0, the end not included; the whole text where not said. */
  readonly place?: { readonly from: number; readonly to: number }
}

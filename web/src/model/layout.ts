// The arrangement of the page: which part stands where, and how large it is.

/** Parts of the page, and the areas in which they stand by default. */
export const PARTS = { market: 'Market', chart: 'Chart', side: 'Order and depth', dock: 'Panels' } as const;
export type Part = keyof typeof PARTS;

/** Areas have the names of the parts that stand there by default. */
export const AREAS: Record<Part, string> = {
  market: 'Top left',
  chart: 'Top middle',
  side: 'Right',
  dock: 'Bottom',
};

export interface Layout {
  /** Area of each part. */
  places: Record<Part, Part>;
  /** Share of the top left area in the width, of the top areas in the height, of the right area. */
  market: number;
  top: number;
  side: number;
}

export const DEFAULT_LAYOUT: Layout = {
  places: { market: 'market', chart: 'chart', side: 'side', dock: 'dock' },
  market: 0.47,
  top: 0.58,
  side: 0.19,
};

const NAMES = Object.keys(PARTS) as Part[];

/** Moves a part to an area. The part that was there takes its place. */
export function movePart(places: Layout['places'], part: Part, area: Part): Layout['places'] {
  const other = NAMES.find((name) => places[name] === area);
  return { ...places, ...(other ? { [other]: places[part] } : {}), [part]: area };
}

/** Returns a saved layout with defaults for what is missing or impossible. */
export function layoutFrom(saved: Partial<Layout> | undefined): Layout {
  const places = saved?.places ?? DEFAULT_LAYOUT.places;
  const isComplete = NAMES.every((area) => NAMES.filter((name) => places[name] === area).length === 1);
  const share = (name: 'market' | 'top' | 'side'): number => {
    const value = saved?.[name];
    return typeof value === 'number' && value > 0 && value < 1 ? value : DEFAULT_LAYOUT[name];
  };
  return {
    places: { ...(isComplete ? places : DEFAULT_LAYOUT.places) },
    market: share('market'),
    top: share('top'),
    side: share('side'),
  };
}

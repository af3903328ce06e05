import { describe, expect, it } from 'vitest';

import { strategySettings } from './strategySettings';

describe('settings of strategies', () => {
  it('are found by the name of the strategy', () => {
    const found = strategySettings({
      'strategy.1.name': 'B',
      'strategy.0.parameters.slow': '10',
      'strategy.0.parameters.fast': '3',
      'strategy.0.name': 'A',
      'strategy.0.kind': 'moving-average-cross',
      'strategy.0.securities': 'AAPL,2',
      'strategy.0.start': 'true',
      'strategy_defaults.start': 'true',
      'risk.strategies.max_open_orders': '5',
    });
    expect([...found]).toEqual([
      ['B', { kind: '', securities: '', parameters: '' }],
      ['A', { kind: 'moving-average-cross', securities: 'AAPL, 2', parameters: 'fast 3, slow 10' }],
    ]);
    expect(strategySettings({}).size).toBe(0);
  });
});

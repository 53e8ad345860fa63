// Before anything is drawn: the colours that were chosen, if any were.
'use strict';
(() => {
  try {
    const chosen = localStorage.getItem('theme');
    if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
  } catch { /* no storage: the system's colours */ }
})();

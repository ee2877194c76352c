// Before anything is drawn: the theme that the reader chose on this page, or the system's.
(() => {
  "use strict";
  try {
    const theme = localStorage.getItem("castellan-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // storage is off: the system's theme it is
  }
})();

"""Builds the native module with CMake; pyproject.toml has the rest.

It needs the Debian packages of deploy/packages.sh. LOCKSTEP_BUILD_DIR may name a
build directory of the tree, for an interpreter of the same version, so that the
module is not compiled once more. A relative one begins at the tree's root, as
pip runs this file in a folder of its own choice.
"""

import os
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


class CMakeBuild(build_ext):

    def build_extension(self, ext):
        target = self.get_ext_fullpath(ext.name)
        folder = os.environ.get("LOCKSTEP_BUILD_DIR")
        if folder is None:
            if not os.path.exists(os.path.join(ROOT, "CMakeLists.txt")):
                raise SystemExit(
                    f"{ROOT} is not the tree of Lockstep, from which CMake "
                    "builds the module: give pip the folder `python` of the "
                    "tree, or set LOCKSTEP_BUILD_DIR to a build directory")
            folder = os.path.abspath(self.build_temp)
            subprocess.check_call([
                "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja",
                "-DCMAKE_BUILD_TYPE=Release",
                f"-DLOCKSTEP_PYTHON={sys.executable}"
            ])
            subprocess.check_call(
                ["cmake", "--build", folder, "--target", "lockstep_native"])
        # An absolute folder stays as it is.
        folder = os.path.join(ROOT, folder)
        built = os.path.join(folder, "python", "lockstep",
                             os.path.basename(target))
        if not os.path.exists(built):
            raise SystemExit(
                f"{built} is not there: build the target lockstep_python of "
                f"{folder}, or leave LOCKSTEP_BUILD_DIR out")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        self.copy_file(built, target)


setup(ext_modules=[Extension("lockstep._native", sources=[])],
      cmdclass={"build_ext": CMakeBuild})
